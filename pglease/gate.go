package pglease

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// enter blocks until a statement may use a connection. The caller must call done when the statement no longer uses
// it. A statement whose context has ended by then counts as not answered.
func (s *rows) enter(ctx context.Context) (done func(), err error) {
	pass, ok := takePass(ctx)
	if !ok {
		if pass, err = s.gate.Enter(ctx, engine.Request{Urgent: ctx.Value(urgentKey{}) != nil}); err != nil {
			return nil, &busyError{size: s.size, err: err}
		}
	}
	return func() { pass.Leave(ctx.Err() == nil) }, nil
}

// admit returns an error if next is a grant for which the gate has no room.
func (s *rows) admit(name string, old, next lease.Record) error {
	if next.State != lease.Leased || next.Epoch == old.Epoch {
		return nil
	}
	return s.gate.Admit(name, next.Duration)
}

// note tells the gate what a write of a record has returned.
func (s *rows) note(name string, next lease.Record, err error) {
	switch {
	case err == nil:
		s.gate.Note(name, next)
	case errors.Is(err, lease.ErrConflict):
		s.gate.Note(name, lease.Record{})
	}
}

// A busyError reports that a request got no connection in time.
type busyError struct {
	size    int  // connections of the pool; 0 if unknown
	sent    bool // true if the request was possibly sent after all
	renewal bool // the request waited for other renewals
	err     error
}

func (e *busyError) Error() string {
	if e.renewal {
		return "other renewals are under way: " + e.err.Error()
	}
	return fmt.Sprintf("all %d connections of the pool are in use: %v", e.size, e.err)
}

func (e *busyError) Unwrap() []error {
	if e.sent {
		return []error{e.err}
	}
	return []error{lease.ErrUnsent, e.err}
}

// urgentKey is the context key that marks a request as urgent.
type urgentKey struct{}

func urgently(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// passKey is the context key of the pass of a statement that the gate has let through already.
type passKey struct{}

func passing(ctx context.Context, pass engine.Pass) context.Context {
	return context.WithValue(urgently(ctx), passKey{}, &pass)
}

// takePass returns the pass of a statement, once. If the statement is repeated, it needs another.
func takePass(ctx context.Context) (engine.Pass, bool) {
	pass, _ := ctx.Value(passKey{}).(*engine.Pass)
	if pass == nil || *pass == (engine.Pass{}) {
		return engine.Pass{}, false
	}
	defer func() { *pass = engine.Pass{} }()
	return *pass, true
}
