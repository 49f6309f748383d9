package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/session"
)

// A Runnable runs a function while its Session holds a lease. Add the Runnable to a manager whose own leader
// election is turned off. It implements manager.Runnable and manager.LeaderElectionRunnable.
//
// The function gets a context and the fencing token of the lease. When the context is canceled, the function
// must return. Under the Conditions of package session, no other process can acquire the lease before the
// StopWindow of the Session has passed.
//
// By default, a Runnable that has lost its lease waits until it can acquire the lease again, and the manager
// keeps running. If another process with the same owner has taken over the lease, the Runnable ends.
//
// The methods of a Runnable are safe for concurrent use by multiple goroutines. Call Start only once.
type Runnable struct {
	lease *session.Session
	f     func(context.Context, lease.Token) error
	o     session.RunOptions

	mu   sync.Mutex
	work context.Context // the context of the function; nil if the function does not run
}

// NewRunnable returns a Runnable that passes the options to [session.Run]. The options may be nil. If the
// option Again is nil, the Runnable contends for the lease again after a loss. It also does so if f returns
// an error that matches [fencing.ErrStale], because a guard can notice the loss before the Session does.
//
// The Runnable and the manager end if f returns any other error while the Session holds the lease. They also
// end if another process with the same owner has taken over the lease ([lease.ErrTakenOver]). The Runnable
// closes the Session when it ends. NewRunnable returns a [*lease.FieldError] if the Session or the function
// is nil.
func NewRunnable(l *session.Session, f func(context.Context, lease.Token) error, o *session.RunOptions) (*Runnable, error) {
	if l == nil {
		return nil, fields.Missing("NewRunnable.l")
	}
	if f == nil {
		return nil, fields.Missing("NewRunnable.f")
	}
	r := &Runnable{lease: l, f: f}
	if o != nil {
		r.o = *o
	}
	if r.o.Again == nil {
		r.o.Again = session.AfterLoss
	}
	return r, nil
}

// Start waits until the Session holds the lease, and then runs the function. After a loss, Start waits for
// the lease again, until ctx is done. When the function has returned, Start releases the lease within
// [session.RunOptions.ReleaseTimeout], and closes the Session within 10 s. Start returns the error of
// session.Run, joined with the error of [session.Session.Close]. After an orderly stop (see
// [session.Stopped]), Start returns only the error of Close.
func (r *Runnable) Start(ctx context.Context) (err error) {
	defer func() { // runs even if the function ends its goroutine
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, r.lease.Close(closing))
	}()
	err = session.Run(ctx, r.lease, r.run, &r.o)
	if session.Stopped(ctx, err) {
		return nil // the manager stops in the normal way
	}
	return err
}

const closeTimeout = 10 * time.Second

func (r *Runnable) run(ctx context.Context, tok lease.Token) error {
	r.mu.Lock()
	r.work = ctx
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.work = nil
		r.mu.Unlock()
	}()
	return r.f(ctx, tok)
}

// NeedLeaderElection returns false, because a Runnable does its own leader election.
func (r *Runnable) NeedLeaderElection() bool { return false }

// Healthz is a healthz.Checker for AddHealthzCheck. It returns an error if the lease may be lost and the
// function is still running after its context has ended. Another process may then work at the same time, so
// the kubelet restarts the container if this check fails.
func (r *Runnable) Healthz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work != nil && r.work.Err() != nil && !r.lease.CheckAlive() {
		return fmt.Errorf("controllerruntime: the function under lease %q was told to stop, and has not returned: %w",
			r.lease.Name(), context.Cause(r.work))
	}
	return nil
}

// Readyz is a healthz.Checker for AddReadyzCheck. It returns nil from the start of the function until the
// context of the function ends, and an error at all other times. Use Readyz if only the leader should receive
// requests.
func (r *Runnable) Readyz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work == nil || r.work.Err() != nil {
		return fmt.Errorf("controllerruntime: lease %q is not held by this process", r.lease.Name())
	}
	return nil
}
