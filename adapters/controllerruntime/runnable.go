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

// A Runnable runs a function while it holds a lease. Add it to a manager whose own leader election is
// off. It is a manager.Runnable and a manager.LeaderElectionRunnable.
//
// The context of the function ends a stop window before the lease may be another's, and the function
// gets the fencing token. After a loss the Runnable contends again, unless its options say otherwise;
// the manager goes on meanwhile.
type Runnable struct {
	lease *session.Session
	f     func(context.Context, lease.Token) error
	o     session.RunOptions

	mu      sync.Mutex
	leads   bool
	stopped time.Time // when the function was told to stop; zero: it was not
}

// NewRunnable makes a Runnable. Nil options are those of session.Run, but for Again: after a loss the
// Runnable contends again, and any other error of f ends it, and with it the manager. The Session is
// closed when the Runnable ends. A nil Session or function is a [*lease.FieldError].
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

// Start contends, runs the function while it holds the lease, and contends again after a loss, until
// ctx ends. It returns once the function has returned and the lease is released. Start is called once.
func (r *Runnable) Start(ctx context.Context) error {
	err := session.Run(ctx, r.lease, r.run, &r.o)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	closed := r.lease.Close(closing)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // the manager ends, as it should
	}
	return errors.Join(err, closed)
}

// closeTimeout bounds the undoing of what is under way.
const closeTimeout = 10 * time.Second

func (r *Runnable) run(ctx context.Context, tok lease.Token) error {
	r.set(true, time.Time{})
	defer r.set(false, time.Time{})
	stop := context.AfterFunc(ctx, func() { r.stop() })
	defer stop()
	return r.f(ctx, tok)
}

func (r *Runnable) set(leads bool, stopped time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leads, r.stopped = leads, stopped
}

// stop takes note that the function was told to stop, if it has not returned since.
func (r *Runnable) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads {
		r.stopped = time.Now()
	}
}

// NeedLeaderElection returns false: the Runnable elects for itself.
func (r *Runnable) NeedLeaderElection() bool { return false }

// Healthz is a healthz.Checker for AddHealthzCheck. It fails if the function was told to stop, has not
// returned, and the lease is not held any more: another one may work at the same time. A kubelet then
// restarts the container.
func (r *Runnable) Healthz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leads && !r.stopped.IsZero() && !r.lease.CheckAlive() {
		return fmt.Errorf("controllerruntime: the function under lease %q was told to stop %v ago, and has not returned",
			r.lease.Name(), time.Since(r.stopped).Round(time.Millisecond))
	}
	return nil
}

// Readyz is a healthz.Checker for AddReadyzCheck. It fails unless the function runs under the lease.
// Use it if only the leader is to be sent requests; a replica that waits is not ready then.
func (r *Runnable) Readyz(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.leads || !r.stopped.IsZero() {
		return fmt.Errorf("controllerruntime: lease %q is not held by this process", r.lease.Name())
	}
	return nil
}
