package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A Runnable runs a function while its Session holds a lease. Add a Runnable to a manager whose own
// leader election is off. A Runnable implements manager.Runnable and
// manager.LeaderElectionRunnable.
//
// The function gets a context and the fencing token of the lease. After the context is canceled, at
// least the StopWindow of the Session passes before another process can acquire the lease. The section
// Conditions of package session lists when the context is canceled too late. Then only the fencing token
// protects the data from late writes.
//
// By default, a Runnable that has lost its lease waits until it can acquire the lease again. The
// manager keeps running while the Runnable waits. If another process with the same owner has taken
// the lease over, the Runnable ends.
//
// The methods of a Runnable are safe for concurrent use by multiple goroutines. Start may be called
// only once.
type Runnable struct {
	lease *session.Session
	f     func(context.Context, lease.Token) error
	o     session.RunOptions

	mu   sync.Mutex
	work context.Context // the context of the function; nil if the function does not run
}

// NewRunnable returns a Runnable. The Runnable passes the options to session.Run. If o is nil, the
// defaults apply. If the option Again is nil, a Runnable that has lost the lease waits until it can
// acquire the lease again. The Runnable also waits for the lease again if f returns an error that
// matches [fencing.ErrStale], because a guard can notice the loss of the lease before the Session
// notices the loss. If another process with the same owner has taken the lease over
// ([lease.ErrTakenOver]), the Runnable and the manager end. The Runnable and the manager also end
// if f returns an error that does not match fencing.ErrStale while the Session holds the lease. The
// Runnable closes the Session when it ends. NewRunnable returns a [*lease.FieldError] if the
// Session or the function is nil.
func NewRunnable(l *session.Session, f func(context.Context, lease.Token) error, o *session.RunOptions) (*Runnable, error) {
	if l == nil {
		return nil, lease.Missing("NewRunnable.l")
	}
	if f == nil {
		return nil, lease.Missing("NewRunnable.f")
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

// Start waits until the Session holds the lease, and then runs the function. If the lease is lost,
// Start waits for the lease again, until ctx is done. After the function has returned, Start
// releases the lease and closes the Session. The release takes at most
// [session.RunOptions.ReleaseTimeout]. Closing the Session takes at most 10 s. Start returns the
// error of session.Run joined with the error of session.Session.Close. Start leaves out the error of
// session.Run if [session.Stopped] reports that it is the result of an orderly stop. Start must be
// called only once.
func (r *Runnable) Start(ctx context.Context) (err error) {
	defer func() { // this runs even if the function ends its goroutine
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		err = errors.Join(err, r.lease.Close(closing))
	}()
	err = session.Run(ctx, r.lease, r.run, &r.o)
	if session.Stopped(ctx, err) {
		return nil // The manager stops in the normal way.
	}
	return err
}

// closeTimeout is the timeout for closing the Session.
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

// Healthz is a healthz.Checker for AddHealthzCheck. Healthz returns an error if three conditions
// are true at the same time: the context of the function has ended, the function is still running,
// and CheckAlive of the Session returns false. If all three conditions are true, another process
// might work at the same time. If the check fails, the kubelet restarts the container.
func (r *Runnable) Healthz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work != nil && r.work.Err() != nil && !r.lease.CheckAlive() {
		return fmt.Errorf("controllerruntime: the function under lease %q was told to stop, and has not returned: %w",
			r.lease.Name(), context.Cause(r.work))
	}
	return nil
}

// Readyz is a healthz.Checker for AddReadyzCheck. Readyz returns an error if the function is not
// running, or if the context of the function has ended. Use Readyz if only the leader should
// receive requests. With Readyz, only the replica of the leader is ready.
func (r *Runnable) Readyz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work == nil || r.work.Err() != nil {
		return fmt.Errorf("controllerruntime: lease %q is not held by this process", r.lease.Name())
	}
	return nil
}
