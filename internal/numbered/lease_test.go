package numbered_test

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/numbered"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// leases makes n Leases of the same store. Their Sessions are closed at the end of the test.
func leases(t *testing.T, m *memory.Store, n int) (ls []*numbered.Lease) {
	for i := range n {
		l, err := numbered.New(lease.ID{byte(i), byte(i >> 8), 1}, func(number int) (*session.Session, error) {
			s, err := m.Lease(strconv.Itoa(number), nil)
			t.Cleanup(func() { _ = s.Close(t.Context()) })
			return s, err
		})
		if err != nil {
			t.Fatal(err)
		}
		ls = append(ls, l)
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
		if ok, err := l.Acquire(t.Context()); !ok || l.Name() == lost {
			t.Errorf("at number %s, and before at %s: %v, %v", l.Name(), lost, ok, err)
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
		l, err := numbered.New(lease.ID{1}, func(number int) (*session.Session, error) {
			if tried++; number >= numbered.Most {
				return nil, fmt.Errorf("number %d", number)
			}
			return m.Lease("taken", nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := l.Acquire(t.Context()); ok || err != nil || tried > 20 {
			t.Errorf("%v, %v after %d leases", ok, err, tried)
		}
	})
}
