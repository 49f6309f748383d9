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

// A Runnable runs a function while it holds a lease. Add it to a manager whose own leader election
// is off. A Runnable implements manager.Runnable and manager.LeaderElectionRunnable.
//
// The function gets a context and the fencing token of the lease. The context is canceled at least
// one StopWindow of the Session before another process can acquire the lease. By default, a
// Runnable that has lost its lease waits until it can acquire the lease again. The manager keeps
// running while the Runnable waits.
type Runnable struct {
	lease *session.Session
	f     func(context.Context, lease.Token) error
	o     session.RunOptions

	mu      sync.Mutex
	leads   bool
	stopped time.Time // when the context of the function was canceled; zero if it was not
}

// NewRunnable returns a Runnable. The options are passed to session.Run, and nil means the
// defaults. If the option Again is nil, a Runnable that has lost the lease waits until it can
// acquire the lease again. Any other error of f ends the Runnable and the manager. The Runnable
// closes the Session when it ends. NewRunnable returns a [*lease.FieldError] if the Session or the
// function is nil.
func NewRunnable(l *session.Session, f func(context.Context, lease.Token) error, o *session.RunOptions) (*Runnable, error) {
	for field, missing := range map[string]bool{"NewRunnable.l": l == nil, "NewRunnable.f": f == nil} {
		if missing {
			return nil, &lease.FieldError{Field: field, Value: "nil", Bound: "must be given", Code: lease.ErrOption}
		}
	}
	r := &Runnable{lease: l, f: f}
	if o != nil {
		r.o = *o
	}
	if r.o.Again == nil {
		r.o.Again = func(err error) bool { return errors.Is(err, lease.ErrLost) }
	}
	return r, nil
}

// Start waits for the lease and runs the function while the lease is held. If the lease is lost,
// Start waits for the lease again, until ctx is done. Start returns only after the function has
// returned and the lease was released. It must be called only once.
func (r *Runnable) Start(ctx context.Context) error {
	err := session.Run(ctx, r.lease, r.run, &r.o)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	closed := r.lease.Close(closing)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // The manager stops in the normal way.
	}
	return errors.Join(err, closed)
}

// closeTimeout is the timeout for closing the Session.
const closeTimeout = 10 * time.Second

func (r *Runnable) run(ctx context.Context, tok lease.Token) error {
	r.set(true, time.Time{})
	defer r.set(false, time.Time{})
	stop := context.AfterFunc(ctx, func() { r.noteCanceled() })
	defer stop()
	return r.f(ctx, tok)
}

func (r *Runnable) set(leads bool, stopped time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leads, r.stopped = leads, stopped
}

// noteCanceled records the time at which the context was canceled, if the function is still
// running.
func (r *Runnable) noteCanceled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads {
		r.stopped = time.Now()
	}
}

// NeedLeaderElection returns false, because a Runnable does its own leader election.
func (r *Runnable) NeedLeaderElection() bool { return false }

// Healthz is a healthz.Checker for AddHealthzCheck. Healthz returns an error if the function still
// runs although its context was canceled and the lease is no longer held. Another process may then
// work at the same time. A kubelet restarts the container when the check fails.
func (r *Runnable) Healthz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads && !r.stopped.IsZero() && !r.lease.CheckAlive() {
		return fmt.Errorf("controllerruntime: the function under lease %q was told to stop %v ago, and has not returned",
			r.lease.Name(), time.Since(r.stopped).Round(time.Millisecond))
	}
	return nil
}

// Readyz is a healthz.Checker for AddReadyzCheck. Readyz returns an error while the function does
// not run under the lease. Use it if only the leader should receive requests. All other replicas
// are then not ready.
func (r *Runnable) Readyz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leads || !r.stopped.IsZero() {
		return fmt.Errorf("controllerruntime: lease %q is not held by this process", r.lease.Name())
	}
	return nil
}
