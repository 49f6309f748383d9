package fencing_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/internal/fields"
)

func TestGuardsAreOnePerResource(t *testing.T) {
	var s fencing.Guards
	a, err := s.Guard("a")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := s.Guard("a"); again != a {
		t.Error("the same resource gave another guard")
	}
	b, _ := s.Guard("b")
	if b == a {
		t.Error("another resource gave the same guard")
	}
	if err := a.Advance(tok(9)); err != nil {
		t.Fatal(err)
	}
	if err := b.Advance(tok(1)); err != nil {
		t.Errorf("tokens of one resource bind another: %v", err)
	}
}

func TestGuardsRefuseBadNames(t *testing.T) {
	var s fencing.Guards
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("x", fields.MaxLabel+1)} {
		if g, err := s.Guard(bad); g != nil || lease.CodeOf(err) != lease.ErrName {
			t.Errorf("Guard(%.20q) = %v, %v; want ErrName", bad, g, err)
		}
	}
}

func TestGuardsAreBounded(t *testing.T) {
	for _, c := range []struct{ max, want int }{{1, 1}, {3, 3}, {0, fencing.DefaultMax}, {-1, fencing.DefaultMax}} {
		s := fencing.Guards{Max: c.max}
		for i := range c.want {
			if _, err := s.Guard(strconv.Itoa(i)); err != nil {
				t.Fatalf("Max %d: guard %d: %v", c.max, i, err)
			}
		}
		if g, err := s.Guard("one more"); g != nil || err != fencing.ErrFull {
			t.Errorf("Max %d: one more: %v, %v; want ErrFull", c.max, g, err)
		}
		if _, err := s.Guard("0"); err != nil {
			t.Errorf("Max %d: a known resource: %v", c.max, err)
		}
		s.Forget("0")
		if _, err := s.Guard("one more"); err != nil {
			t.Errorf("Max %d: one more after Forget: %v", c.max, err)
		}
	}
}

// After Forget, the resource has a new guard that has seen no token.
func TestForget(t *testing.T) {
	var s fencing.Guards
	s.Forget("never there")
	for _, epoch := range []uint64{9, 8} {
		g, err := s.Guard("a")
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Advance(tok(epoch)); err != nil {
			t.Errorf("token %d: %v", epoch, err)
		}
		s.Forget("a")
	}
	if marks := s.Marks(); len(marks) != 0 {
		t.Errorf("Marks() = %v", marks)
	}
}

// SPEC G6.
func TestMarksSurviveARestart(t *testing.T) {
	var before, after fencing.Guards
	want := map[string]lease.Token{"a": tok(3), "b": tok(1<<63 - 1)}
	for resource, mark := range want {
		g, err := before.Guard(resource)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Advance(mark); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := before.Guard("never shown a token"); err != nil {
		t.Fatal(err)
	}
	kept := before.Marks()
	if !maps.Equal(kept, want) {
		t.Fatalf("Marks() = %v, want %v", kept, want)
	}
	for resource, mark := range kept {
		g, err := after.Guard(resource)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Advance(mark); err != nil {
			t.Fatal(err)
		}
	}
	g, _ := after.Guard("a")
	if err := g.Advance(tok(2)); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("after the restart: %v, want ErrStale", err)
	}
}

func TestGuardsConcurrently(t *testing.T) {
	var s fencing.Guards
	var mu sync.Mutex
	seen := map[string]map[*fencing.Guard]bool{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				name := strconv.Itoa((n + i) % 10)
				g, err := s.Guard(name)
				if err != nil {
					t.Error(err)
					return
				}
				_ = g.Advance(tok(uint64(n + 1))) // the token may be stale
				mu.Lock()
				if seen[name] == nil {
					seen[name] = map[*fencing.Guard]bool{}
				}
				seen[name][g] = true
				mu.Unlock()
				s.Marks()
			}
		})
	}
	wg.Wait()
	for name, guards := range seen {
		if len(guards) != 1 {
			t.Errorf("resource %s had %d guards", name, len(guards))
		}
	}
}
