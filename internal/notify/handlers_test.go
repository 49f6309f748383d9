package notify_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fencedlease/lease/internal/notify"
)

// all calls every function in s with arg, and returns the values of the panics.
func all(s *notify.Handlers[int], arg int) (panics []any) {
	for _, call := range s.Calls(arg, func(p any) { panics = append(panics, p) }) {
		call()
	}
	return panics
}

// Functions are called in order of registration, and as often as they were added.
func TestOrder(t *testing.T) {
	var s notify.Handlers[int]
	var got []string
	all(&s, 0)
	twice := func(n int) { got = append(got, fmt.Sprint("b", n)) }
	s.Add(func(n int) { got = append(got, fmt.Sprint("a", n)) })
	s.Add(twice)
	s.Add(twice)
	all(&s, 1)
	all(&s, 2)
	if want := []string{"a1", "b1", "b1", "a2", "b2", "b2"}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}

// After a function was removed, it is not called, not even by a function that Calls returned before.
func TestRemove(t *testing.T) {
	var s notify.Handlers[int]
	var got []string
	add := func(name string) func() bool {
		return s.Add(func(int) { got = append(got, name) })
	}
	a, b := add("a"), add("b")
	calls := s.Calls(0, nil)
	add("late")
	if !a() || a() {
		t.Error("remove is true once")
	}
	for _, call := range calls {
		call()
	}
	if want := []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
	b()
	all(&s, 0)
	if want := []string{"b", "late"}; !slices.Equal(got, want) {
		t.Errorf("called %v, want %v", got, want)
	}
}
