package cancel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/fencedlease/lease/internal/cancel"
)

var errOne, errTwo = errors.New("one"), errors.New("two")

// ended checks that the Context c has ended with the cause want. If want is nil, ended checks that
// c has not ended.
func ended(t *testing.T, what string, c *cancel.Context, want error) {
	t.Helper()
	if got := context.Cause(c); got != want {
		t.Errorf("%s: the cause is %v, want %v", what, got, want)
	}
}

// The contexts of a Set end together, when the function that End returns is called.
func TestSet(t *testing.T) {
	var s cancel.Set
	a, b, removed := cancel.New(t.Context()), cancel.New(t.Context()), cancel.New(t.Context())
	for _, c := range []*cancel.Context{a, b, removed} {
		s.Add(c)
	}
	s.Remove(removed)
	end := s.End(errOne)
	ended(t, "before", a, nil)
	later := cancel.New(t.Context())
	s.Add(later)
	end()
	ended(t, "a", a, errOne)
	ended(t, "b", b, errOne)
	ended(t, "removed", removed, nil)
	ended(t, "later", later, nil)
	s.End(errTwo)()
	ended(t, "a, ended before", a, errOne)
	ended(t, "later", later, errTwo)
	removed.End(errTwo)
	ended(t, "removed", removed, errTwo)
}

// If Set.End has decided the cause, the Context is canceled with this cause, even by a call of
// Context.End with another cause.
func TestFirstCauseCounts(t *testing.T) {
	var s cancel.Set
	c := cancel.New(t.Context())
	s.Add(c)
	end := s.End(errOne)
	c.End(errTwo)
	ended(t, "ended by itself", c, errOne)
	end()
	c.End(errTwo)
	ended(t, "ended again", c, errOne)
}

// If the parent of a Context ends first, the Context ends with the cause of the parent.
func TestParent(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	c := cancel.New(ctx)
	end(errTwo)
	c.End(errOne)
	ended(t, "ended by its parent", c, errTwo)
}
