package engine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// The Gate learns from each Swap of a store whether the store holds the lease, and the store learns how urgent it is. A
// Swap with which an operator or another process ends a lease does not overtake others, because it may wait for a lock.
func TestGateSwap(t *testing.T) {
	held := lease.Record{State: lease.Leased, ID: lease.ID{1}, Epoch: 1, Duration: time.Minute}
	changed, again := held, held
	changed.ID, again.Epoch = lease.ID{2}, 2
	broken := lease.Record{State: lease.Broken, ID: lease.ID{1}, Epoch: 1}
	renewal := Request{Urgent: true, Name: "x", Renewals: 1}
	bad := errors.New("no answer")
	for _, c := range []struct {
		what      string
		old, next lease.Record
		err       error
		request   Request
		holds     bool // before the Swap
		held      bool // after it
	}{
		{"a grant", lease.Record{}, held, nil, Request{}, false, true},
		{"a grant to another", lease.Record{}, held, lease.ErrConflict, Request{}, false, false},
		{"a grant without an answer", lease.Record{}, held, bad, Request{}, false, false},
		{"another grant", held, again, nil, Request{}, true, true},
		{"a renewal", held, held, nil, renewal, false, true},
		{"a renewal without an answer", held, held, bad, renewal, true, true},
		{"a renewal after a loss", held, held, fmt.Errorf("lost: %w", lease.ErrConflict), renewal, true, false},
		{"a change", held, changed, nil, renewal, true, true},
		{"a release", held, lease.Record{State: lease.Available, Epoch: 1}, nil, Request{Urgent: true}, true, false},
		{"a break", held, broken, nil, Request{}, true, false},
	} {
		g := NewGate(1)
		if c.holds {
			g.Note("x", held)
		}
		var got Request
		f := func(r Request) error { got = r; return c.err }
		err := g.Swap("x", c.old, c.next, f)
		if _, held := g.room.held["x"]; err != c.err || got != c.request || held != c.held {
			t.Errorf("%s: %v, %+v, held %v; want %v, %+v, held %v", c.what, err, got, held, c.err, c.request, c.held)
		}
		got = Request{}
		if err := (*Gate)(nil).Swap("x", c.old, c.next, f); err != c.err || got != c.request {
			t.Errorf("%s without a Gate: %v, %+v", c.what, err, got)
		}
	}
}

// What a server answers with a Code shows that it works. After any other error, and after a panic, it gets fewer requests.
// A renewal that conflicts, because the answer to an earlier one was lost, does not count as a renewal. Otherwise a
// server that was slow would seem to do twice as much as it does, and get more leases than it can renew.
func TestGateDo(t *testing.T) {
	for _, c := range []struct {
		what     string
		f        func() error
		answered bool
		renewals int
	}{
		{"nil", func() error { return nil }, true, 1},
		{"a conflict", func() error { return fmt.Errorf("x: %w", lease.ErrConflict) }, true, 0},
		{"a damaged record", func() error { return fmt.Errorf("x: %w", lease.ErrCorrupt) }, true, 1},
		{"closed", func() error { return lease.ErrClosed }, false, 0},
		{"no connection", func() error { return fmt.Errorf("x: %w", lease.ErrUnsent) }, false, 0},
		{"a busy server", func() error { return errors.New("busy") }, false, 0},
		{"a panic", func() error { panic("x") }, false, 0},
	} {
		g := NewGate(16)
		g.room.began = time.Now()
		func() {
			defer func() { _ = recover() }()
			_ = g.Do(t.Context(), Request{Renewals: 1}, c.f)
		}()
		if f := &g.flow; f.underWay != 0 || (f.limit == 16) != c.answered || g.room.renewals != c.renewals {
			t.Errorf("after %s, %d are under way of at most %v, and %d renewals are counted", c.what, f.underWay, f.limit, g.room.renewals)
		}
	}
}
