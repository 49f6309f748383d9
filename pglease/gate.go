package pglease

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// newGate returns a gate for a pool of size connections, or nil if size is not positive, which means no limit.
func newGate(size int) *engine.Gate {
	if size <= 0 {
		return nil
	}
	return engine.NewGate(size)
}

// enter blocks until a statement may use a connection. The caller must call done when the statement no longer uses
// it. A statement whose context has ended by then counts as not answered.
func (s *rows) enter(ctx context.Context) (done func(), err error) {
	if s.gate == nil {
		return func() {}, nil
	}
	renewals, urgent := ctx.Value(urgentKey{}).(int)
	pass, err := s.gate.Enter(ctx, engine.Request{Urgent: urgent, Renewals: renewals, Partial: renewals < mostRenewals && renewals > 0})
	if err != nil {
		return nil, &busyError{size: s.size, err: err}
	}
	return func() { pass.Leave(ctx.Err() == nil) }, nil
}

// admit returns an error if next is a grant for which the gate has no room.
func (s *rows) admit(name string, old, next lease.Record) error {
	if s.gate == nil || next.State != lease.Leased || next.Epoch == old.Epoch {
		return nil
	}
	return s.gate.Admit(name, next.Duration)
}

// note tells the gate what a write of a record has returned.
func (s *rows) note(name string, next lease.Record, err error) {
	switch {
	case s.gate == nil:
	case err == nil:
		s.gate.Note(name, next)
	case errors.Is(err, lease.ErrConflict):
		s.gate.Note(name, lease.Record{})
	}
}

// A busyError reports that a request got no connection in time.
type busyError struct {
	size     int  // connections of the pool; 0 if unknown
	sent     bool // true if the request was possibly sent after all
	renewals int  // statements of renewals that the request waited for; 0 if it waited for a connection
	err      error
}

func (e *busyError) Error() string {
	switch {
	case e.renewals > 0 && e.size > 0:
		return fmt.Sprintf("%d statements of renewals are under way, the most for a pool of %d: %v", e.renewals, e.size, e.err)
	case e.renewals > 0:
		return "other renewals are under way: " + e.err.Error()
	}
	return fmt.Sprintf("all %d connections of the pool are in use: %v", e.size, e.err)
}

func (e *busyError) Unwrap() error { return e.err }

// wasNotSent reports whether err proves that the request was not sent.
func wasNotSent(err error) bool {
	var busy *busyError
	return errors.As(err, &busy) && !busy.sent
}

// urgentKey is the context key that marks a request as urgent. The value is the number of leases that it renews.
type urgentKey struct{}

func urgently(ctx context.Context, renewals int) context.Context {
	return context.WithValue(ctx, urgentKey{}, renewals)
}
