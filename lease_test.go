package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fencedlease/lease"
)

// A plain is a Lease with only the four methods of the interface Lease.
type plain struct {
	alive   bool
	handler func(error)
	stopped int
}

func (p *plain) Acquire(context.Context) (bool, error) { return p.alive, errPlain }
func (p *plain) Release(context.Context) error         { return nil }
func (p *plain) CheckAlive() bool                      { return p.alive }
func (p *plain) OnLost(f func(error)) func() bool {
	p.handler = f
	return func() bool { p.stopped++; return p.stopped == 1 }
}

var errPlain = errors.New("of the plain lease")

// An able is a Lease that also has the methods AcquireWithToken and WhileHeld.
type able struct{ plain }

type key struct{}

func (a *able) AcquireWithToken(context.Context) (lease.Token, bool, error) {
	return lease.TokenOf(7), true, nil
}

func (a *able) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithValue(ctx, key{}, a), func() { a.stopped++ }
}

func TestAcquireWithToken(t *testing.T) {
	if tok, ok, err := lease.AcquireWithToken(t.Context(), &able{}); tok != lease.TokenOf(7) || !ok || err != nil {
		t.Errorf("able: %q, %v, %v", tok, ok, err)
	}
	for _, alive := range []bool{true, false} {
		if tok, ok, err := lease.AcquireWithToken(t.Context(), &plain{alive: alive}); tok != "" || ok != alive || err != errPlain {
			t.Errorf("plain: %q, %v, %v", tok, ok, err)
		}
	}
}

// The error for a nil argument names the argument, and the function calls nothing.
func TestNilArguments(t *testing.T) {
	_, ok, acquired := lease.AcquireWithToken(t.Context(), nil)
	_, broken := lease.Break(t.Context(), nil, "a", lease.Period{})
	_, inspected := lease.Inspect(t.Context(), nil, "a")
	for argument, err := range map[string]error{"AcquireWithToken.l": acquired, "Break.a": broken, "Inspect.a": inspected} {
		var field *lease.FieldError
		if !errors.As(err, &field) || *field != (lease.FieldError{Field: argument, Value: "nil", Bound: "must be given", Code: lease.ErrOption}) {
			t.Errorf("%s: %v", argument, err)
		}
	}
	if ok {
		t.Error("a nil Lease was acquired")
	}
	var none context.Context
	for says, f := range map[string]func(){
		"lease: WhileHeld: the Lease must not be nil":    func() { lease.WhileHeld(t.Context(), nil) },
		"lease: NewAuthority: the Store must not be nil": func() { lease.NewAuthority(nil) },
		"lease: WhileHeld: the context must not be nil":  func() { lease.WhileHeld(none, nil) },
		"lease: Break: the context must not be nil":      func() { _, _ = lease.Break(none, nil, "x", lease.Period{}) },
		"lease: Inspect: the context must not be nil":    func() { _, _ = lease.Inspect(none, nil, "x") },
	} {
		func() {
			defer func() {
				if got := recover(); got != says {
					t.Errorf("panics with %v, want %s", got, says)
				}
			}()
			f()
		}()
	}
}

// SPEC H20, for a Lease that has only four methods.
func TestWhileHeld(t *testing.T) {
	cause := errors.New("gone")
	t.Run("its own method", func(t *testing.T) {
		l := &able{}
		ctx, cancel := lease.WhileHeld(t.Context(), l)
		if ctx.Value(key{}) != l || l.handler != nil {
			t.Error("it was not asked")
		}
		if cancel(); l.stopped != 1 {
			t.Error("its function was not called")
		}
	})
	t.Run("lost", func(t *testing.T) {
		l := &plain{alive: true}
		ctx, cancel := lease.WhileHeld(context.WithValue(t.Context(), key{}, l), l)
		defer cancel()
		if ctx.Err() != nil || ctx.Value(key{}) != l {
			t.Fatalf("at first: %v", ctx.Err())
		}
		l.handler(cause)
		if ctx.Err() != context.Canceled || context.Cause(ctx) != cause {
			t.Errorf("%v, %v", ctx.Err(), context.Cause(ctx))
		}
	})
	t.Run("lost without a cause", func(t *testing.T) {
		l := &plain{alive: true}
		ctx, cancel := lease.WhileHeld(t.Context(), l)
		defer cancel()
		l.handler(nil)
		if context.Cause(ctx) != lease.ErrLost {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
	t.Run("not held", func(t *testing.T) {
		l := &plain{}
		ctx, cancel := lease.WhileHeld(t.Context(), l)
		defer cancel()
		if context.Cause(ctx) != lease.ErrNotHeld {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
	t.Run("done with", func(t *testing.T) {
		l := &plain{alive: true}
		ctx, cancel := lease.WhileHeld(t.Context(), l)
		if cancel(); l.stopped != 1 || context.Cause(ctx) != context.Canceled {
			t.Errorf("stopped %d times, %v", l.stopped, context.Cause(ctx))
		}
		l.handler(cause) // too late
		if context.Cause(ctx) != context.Canceled {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
	t.Run("the parent ends", func(t *testing.T) {
		l := &plain{alive: true}
		parent, end := context.WithCancelCause(t.Context())
		ctx, cancel := lease.WhileHeld(parent, l)
		defer cancel()
		if end(cause); context.Cause(ctx) != cause {
			t.Errorf("%v", context.Cause(ctx))
		}
	})
}
