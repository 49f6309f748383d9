package gocron

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// An Elector is a gocron.Elector: the process that holds its lease runs the jobs. It is safe for
// concurrent use.
type Elector struct {
	l lease.Lease
	o *session.RunOptions

	mu   sync.Mutex
	term *term // nil while the lease is not held, and once its stop window has begun
}

// A term is one period in which the lease is held.
type term struct {
	ctx  context.Context
	tok  lease.Token
	jobs sync.WaitGroup
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for the lease l. It panics if l is nil. The options are those of
// [Elector.Run], and can be nil.
func NewElector(l lease.Lease, o *session.RunOptions) *Elector {
	if l == nil {
		panic("gocron: NewElector: the lease must not be nil")
	}
	return &Elector{l: l, o: o}
}

// Run contends for the lease and holds it until ctx ends, as [session.Run] does with the options of the
// Elector. It releases the lease when the running jobs of [Elector.Task] have returned. Set Again to
// session.AfterLoss, so that Run contends again after a loss.
func (e *Elector) Run(ctx context.Context) error {
	return session.Run(ctx, e.l, func(ctx context.Context, tok lease.Token) error {
		t := &term{ctx: ctx, tok: tok}
		e.set(t)
		<-ctx.Done()
		e.set(nil)
		t.jobs.Wait()
		return nil
	}, e.o)
}

func (e *Elector) set(t *term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = t
}

// begin returns the present term, and counts one more running job in it, or returns nil if there is
// no term.
func (e *Elector) begin() *term {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.term == nil || e.term.ctx.Err() != nil || !e.l.CheckAlive() {
		return nil
	}
	e.term.jobs.Add(1)
	return e.term
}

var errNotLeader = errors.New("another process leads, or none does")

// IsLeader returns nil if this process holds the lease.
func (e *Elector) IsLeader(context.Context) error {
	if t := e.begin(); t != nil {
		t.jobs.Done()
		return nil
	}
	return fmt.Errorf("gocron: %w: %w", errNotLeader, lease.ErrNotHeld)
}

// Task returns a task that calls f while this process leads. The context of f ends with the context of
// the job, and also in the stop window of the lease, with the loss as its cause. If this process no
// longer leads when the task begins, the task returns an error that matches [lease.ErrNotHeld], and
// does not call f.
func (e *Elector) Task(f func(ctx context.Context) error) gocron.Task {
	if f == nil {
		panic("gocron: Task: the function must not be nil")
	}
	return gocron.NewTask(func(ctx context.Context) error {
		t := e.begin()
		if t == nil {
			return fmt.Errorf("gocron: %w: %w", errNotLeader, lease.ErrNotHeld)
		}
		defer t.jobs.Done()
		ctx, cancel := context.WithCancelCause(withToken(ctx, t.tok))
		defer cancel(nil)
		defer context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })()
		return f(ctx)
	})
}
