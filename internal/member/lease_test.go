package member_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// open makes a Lease of the authority that shows owner. It ends with the test.
func open(t *testing.T, a lease.Authority, id lease.ID, owner string, name func(int) string) *member.Lease {
	o, err := (&session.Options{Owner: owner, Logger: slog.New(slog.DiscardHandler)}).Complete()
	if err != nil {
		t.Fatal(err)
	}
	l, err := member.New(a, name, id, *o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.End(context.Background()) })
	return l
}

// leases makes n Leases of the same store.
func leases(t *testing.T, m *memory.Store, n int) (ls []*member.Lease) {
	for i := range n {
		ls = append(ls, open(t, m.Authority(), lease.ID{byte(rand.N(256)), byte(i), byte(i >> 8)}, strconv.Itoa(i), strconv.Itoa))
	}
	return ls
}

// Every Lease has a number of its own, and few more numbers are used than there are Leases at a time.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		used := map[string]bool{}
		for range 10 {
			held := map[string]bool{}
			for i, l := range leases(t, m, 300) {
				if ok, err := l.Acquire(t.Context()); !ok || held[l.Name()] {
					t.Fatalf("Lease %d at number %s: %v, %v", i, l.Name(), ok, err)
				}
				held[l.Name()], used[l.Name()] = true, true
				defer l.Release(t.Context())
			}
			for name := range held {
				if _, err := lease.Break(t.Context(), m.Authority(), name, lease.Grace(0)); err != nil {
					t.Error(err)
				}
			}
		}
		if len(used) > 2048 {
			t.Errorf("%d names for 300 Leases at a time", len(used))
		}
	})
}

// A Lease that another process has acquired after a loss gets another number.
func TestLeaseLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		l := leases(t, m, 1)[0]
		if ok, err := l.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		lost := l.Name()
		if _, err := lease.Break(t.Context(), m.Authority(), lost, lease.Grace(0)); err != nil {
			t.Fatal(err)
		}
		other, err := m.Lease(lost, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(t.Context())
		if ok, err := other.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := l.Show(t.Context(), "0"); err != nil || !l.CheckAlive() || l.Name() == lost {
			t.Errorf("at number %s, and before at %s: %v", l.Name(), lost, err)
		}
	})
}

// If no lease can be had, Acquire ends, and returns false.
func TestLeaseRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		other, err := m.Lease("taken", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(t.Context())
		if ok, err := other.Acquire(t.Context()); !ok {
			t.Fatal(err)
		}
		tried := 0
		l := open(t, m.Authority(), lease.ID{1}, "", func(number int) string {
			if tried++; number >= member.Most {
				t.Errorf("number %d", number)
			}
			return "taken"
		})
		if ok, err := l.Acquire(t.Context()); ok || err != nil || tried > 20 {
			t.Errorf("%v, %v after %d leases", ok, err, tried)
		}
	})
}

// An answered authority calls a function after each request.
type answered struct {
	lease.Authority
	after func(name string)
}

func (a answered) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	defer a.after(name)
	return a.Authority.Do(ctx, name, req)
}

// Show acquires the lease, keeps it while the owner stays the same, and replaces it when the owner changes. At
// each change of a record there is a lease in force, so no list lacks the member.
func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		owners := func() (all []string) {
			for e := range m.List(t.Context(), "n/") {
				if e.Record.State.Locked() {
					all = append(all, e.Record.Owner)
				}
			}
			return all
		}
		gone, ended := 0, false
		a := answered{m.Authority(), func(name string) {
			if strings.HasPrefix(name, "n/") && len(owners()) == 0 && !ended {
				gone++
			}
		}}
		l := open(t, a, lease.ID{7}, "one", func(i int) string { return fmt.Sprint("n/", i) })
		var held string
		for _, owner := range []string{"one", "one", "two", "two", "one"} {
			before := l.Token()
			if err := l.Show(t.Context(), owner); err != nil {
				t.Error(err)
			}
			if got := owners(); !slices.Equal(got, []string{owner}) || owner == held && l.Token() != before {
				t.Errorf("shows %q instead of %q", got, owner)
			}
			held = owner
		}
		if gone > 0 {
			t.Errorf("%d times a request has left no lease", gone)
		}
		if err := l.Show(t.Context(), strings.Repeat("x", fields.MaxLabel+1)); err == nil || !slices.Equal(owners(), []string{"one"}) {
			t.Errorf("an owner that is too long: %v; shows %q", err, owners())
		}
		ended = true
		if err := l.End(t.Context()); err != nil || owners() != nil {
			t.Errorf("%q after the end: %v", owners(), err)
		}
	})
}

// However short the Grace of the Options is, a holder learns of a break, and has its StopWindow to stop.
func TestBreakGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		for range 20 {
			l := open(t, m.Authority(), lease.ID{1}, "", func(int) string { return "held" })
			if ok, err := l.Acquire(t.Context()); !ok {
				t.Fatal(err)
			}
			held, stopped := l.WhileHeld(t.Context())
			time.Sleep(rand.N(time.Minute))
			o, err := (&session.Options{}).Complete()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := lease.Break(t.Context(), m.Authority(), "held", lease.Grace(member.BreakGrace(o, time.Millisecond))); err != nil {
				t.Fatal(err)
			}
			<-held.Done()
			time.Sleep(o.StopWindow - time.Millisecond)
			if res, err := lease.Inspect(t.Context(), m.Authority(), "held"); err != nil || !res.Record.State.Locked() {
				t.Errorf("%v before the work had to stop: %v", res.Record.State, err)
			}
			stopped()
			_ = l.End(t.Context())
		}
	})
}
