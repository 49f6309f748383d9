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

// An Elector is a gocron.Elector. While its process holds the lease, the scheduler runs the jobs. An Elector
// is safe for concurrent use.
type Elector struct {
	l lease.Lease
	o *session.RunOptions

	mu   sync.Mutex
	term *term // nil while the lease is not held, and from the beginning of its stop window on
}

type term struct {
	ctx  context.Context
	tok  lease.Token
	jobs sync.WaitGroup
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns an Elector for the lease l. It panics if l is nil. [Elector.Run] uses the options, which
// can be nil.
func NewElector(l lease.Lease, o *session.RunOptions) *Elector {
	if l == nil {
		panic("gocron: NewElector: the lease must not be nil")
	}
	return &Elector{l: l, o: o}
}

// Run contends for the lease and holds it until ctx ends, like [session.Run] with the options of the Elector.
// It releases the lease when the running jobs of [Elector.Task] have returned. Set the option Again to
// session.AfterLoss, so that Run contends again after a loss of the lease.
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

// The method begin adds a running job to the current term, and returns this term. It returns nil if this
// process is not the leader.
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

// Task returns a task that calls f while this process leads. The context of f ends when the context of the
// job ends, or when the stop window of the lease begins. When the stop window has begun, the cause of the
// context is the loss of the lease. If this process no longer leads when the task begins, the task does not
// call f, and returns an error that matches [lease.ErrNotHeld].
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
