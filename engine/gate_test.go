package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
)

// Renewals overtake all other requests, each kind keeps its order, and a request whose context ends while it
// waits keeps no place.
func TestGateSendsUrgentRequestsFirst(t *testing.T) {
	for _, most := range []int{1, 2, 4, 7, 16} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(most)
			var mu sync.Mutex
			var order []string
			var passes []Pass
			enter := func(ctx context.Context, what string, urgent bool) {
				go func() {
					p, err := g.Enter(ctx, Request{Urgent: urgent})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						what += ": canceled"
						if !errors.Is(err, context.Canceled) || !errors.Is(err, lease.ErrUnsent) {
							t.Errorf("%s: %v", what, err)
						}
					} else {
						passes = append(passes, p)
					}
					order = append(order, what)
				}()
				synctest.Wait()
			}
			for range most - g.Spare() {
				enter(t.Context(), "first", false)
			}
			enter(t.Context(), "other 1", false)
			short, cancel := context.WithCancel(t.Context())
			enter(short, "other 2", false)
			enter(t.Context(), "other 3", false)
			for range g.Spare() {
				enter(t.Context(), "spare", true)
			}
			if len(order) != most || order[most-1] == "other 1" {
				t.Fatalf("at most %d: %q", most, order)
			}
			enter(t.Context(), "urgent 1", true)
			enter(t.Context(), "urgent 2", true)
			order = nil
			cancel()
			synctest.Wait()
			for len(passes) > 0 {
				p := passes[0]
				passes = passes[1:]
				p.Leave(true)
				synctest.Wait()
			}
			if want := []string{"other 2: canceled", "urgent 1", "urgent 2", "other 1", "other 3"}; !slices.Equal(order, want) {
				t.Errorf("at most %d: %q, want %q", most, order, want)
			}
			if g.flow.underWay != 0 {
				t.Errorf("%d are under way at the end", g.flow.underWay)
			}
			if _, err := g.Enter(short, Request{}); !errors.Is(err, context.Canceled) {
				t.Errorf("entered after the end of its context: %v", err)
			}
		})
	}
}

// A request that would be answered too late is not sent, and its caller learns this before its deadline.
func TestGateDropsWhatIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(2)
		first, _ := g.Enter(t.Context(), Request{Urgent: true})
		second, _ := g.Enter(t.Context(), Request{Urgent: true})
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		refused := make(chan error)
		go func() {
			_, err := g.Enter(ctx, Request{Urgent: true})
			refused <- err
		}()
		time.Sleep(time.Second)
		first.Leave(true) // the usual time is a second now, and 200 ms are left
		if err := <-refused; !errors.Is(err, ErrTooLate) || !errors.Is(err, lease.ErrUnsent) {
			t.Errorf("%v, want %v", err, ErrTooLate)
		}
		second.Leave(true)
		if p, err := g.Enter(ctx, Request{Urgent: true}); err != nil {
			t.Errorf("nothing is under way, so that a request must be sent: %v", err)
		} else {
			p.Leave(true)
		}
	})
}

// After a silence of the server, a request without a deadline that never ends does not keep others waiting for longer
// than a quarter of the patience that is assumed.
func TestGateWithARequestThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(64)
		for range 100 { // of silence
			p, err := g.Enter(t.Context(), Request{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			p.Leave(false)
		}
		if _, err := g.Enter(t.Context(), Request{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), unknownPatience/4+1)
		defer cancel()
		if _, err := g.Enter(ctx, Request{}); err != nil {
			t.Errorf("beside a request that never ends: %v", err)
		}
	})
}

// What a server does says how much it can do only while requests wait, most of them are renewals, and none could
// have renewed more leases. What it did around a pause says nothing. The bound counts for one store: leases that are
// held, released or not renewed any more make room.
func TestGateMeasuresAtTheWall(t *testing.T) {
	for _, c := range []struct {
		what            string
		renewals, reads int // answered in each tenth of a second
		partial, idle   bool
		behind          bool
		each            time.Duration
		full            bool
	}{
		{what: "renewals at the wall", renewals: 10, reads: 1, each: 100 * time.Millisecond, full: true},
		{what: "renewals wait to be sent together", renewals: 10, reads: 1, idle: true, behind: true, each: 100 * time.Millisecond, full: true},
		{what: "nothing waits", renewals: 10, reads: 1, idle: true, each: 100 * time.Millisecond},
		{what: "many reads", renewals: 10, reads: 5, each: 100 * time.Millisecond},
		{what: "larger batches are possible", renewals: 10, reads: 1, partial: true, each: 100 * time.Millisecond},
		{what: "pauses", renewals: 10, reads: 1, each: 1500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(8)
			record := lease.Record{State: lease.Leased, Duration: 30 * time.Second}
			for i := range 900 { // 90 renewals a second
				g.Note(fmt.Sprint(i), record)
			}
			var waits sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			if !c.idle {
				for range 8 {
					waits.Go(func() { _, _ = g.Enter(ctx, Request{}) })
				}
				synctest.Wait()
			}
			if c.behind {
				g.fallBehind(1)
			}
			for range 12 {
				time.Sleep(c.each)
				for range c.renewals {
					Pass{g, Request{Urgent: true, Renewals: 1, Partial: c.partial}, time.Now(), false}.answer()
				}
				for range c.reads {
					Pass{g, Request{}, time.Now(), false}.answer()
				}
			}
			if err := g.Admit("another", 30*time.Second); (err != nil) != c.full {
				t.Errorf("%s: %v", c.what, err)
			}
			if c.full {
				if err := g.Admit("7", 30*time.Second); err != nil {
					t.Errorf("a lease that is held is refused: %v", err)
				}
				for i := range 100 {
					g.Note(fmt.Sprint(i), lease.Record{})
				}
				if err := g.Admit("another", 30*time.Second); err != nil {
					t.Errorf("refused after leases were released: %v", err)
				}
				time.Sleep(31 * time.Second)
				if err := g.Admit("another", time.Second/25); err != nil {
					t.Errorf("refused after no lease was renewed: %v", err)
				}
			}
			cancel()
			waits.Wait()
		})
	}
}

// A figure that was measured while the machine was busy with something else is measured again before a lease is refused
// because of it: one measurement says nothing, and two say nothing any more once the server has renewed all leases
// without a queue.
func TestGateMeasuresABusyMomentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(8)
		const duration, held = 30 * time.Second, 3000 // 300 renewals a second
		renew := func(perTenth int, queued bool, windows int) {
			ctx, cancel := context.WithCancel(t.Context())
			var waits sync.WaitGroup
			for range 8 {
				if queued {
					waits.Go(func() { _, _ = g.Enter(ctx, Request{}) })
				}
			}
			synctest.Wait()
			for range windows * 5 {
				time.Sleep(window / 5)
				for range perTenth {
					Pass{g, Request{Urgent: true, Renewals: 1}, time.Now(), false}.answer()
				}
			}
			cancel()
			waits.Wait()
			g.flow.underWay, g.flow.others = 0, 0 // those that were let in are not answered
			for i := range held {
				g.Note(fmt.Sprint(i), lease.Record{State: lease.Leased, Duration: duration})
			}
		}
		admitted := func(want bool, when string) {
			t.Helper()
			if err := g.Admit("another", duration); (err == nil) != want {
				t.Errorf("%s: %v", when, err)
			}
		}
		renew(30, false, 2)
		renew(5, true, 2) // the first of them began before the queue
		admitted(true, "after one measurement of a sixth")
		renew(30, false, 2)
		renew(5, true, 2) // the first of them began before the queue
		admitted(true, "after one more, later")
		renew(30, false, 2)
		renew(5, true, 3)
		admitted(false, "while the server does a sixth")
		renew(30, false, int(duration/3/window)+1)
		admitted(true, "after all were renewed without a queue")
	})
}

// answer is Leave for a request that did not enter.
func (p Pass) answer() {
	p.gate.mu.Lock()
	p.gate.flow.send(p.sent, &waiter{urgent: p.request.Urgent})
	p.gate.mu.Unlock()
	p.Leave(true)
}

// A gate that was never at its limit forgets leases that have ended without a Note.
func TestGateForgetsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(4)
		for i := range 1000 {
			name := fmt.Sprint("job/", i)
			if err := g.Admit(name, time.Second); err != nil {
				t.Fatal(err)
			}
			g.Note(name, lease.Record{State: lease.Leased, Duration: time.Second})
			time.Sleep(time.Second)
		}
		if n := len(g.room.held); n > 10 {
			t.Errorf("the gate remembers %d leases, all but one of which have ended", n)
		}
	})
}
