package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
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

// While the server is silent, the Gate sends a request in each quarter of the patience that is assumed, also beside
// requests without a deadline that never end.
func TestGateSendsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(8)
		const quarter = unknownPatience / 4
		for i, want := range []time.Duration{0, 0, quarter, quarter} {
			if i == 1 {
				time.Sleep(quarter)
			}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), quarter+1)
			defer cancel()
			if _, err := g.Enter(ctx, Request{}); err != nil || time.Since(began) != want {
				t.Errorf("request %d: %v after %v, want %v", i, err, time.Since(began), want)
			}
		}
	})
}

// Requests that were canceled or not sent, and the time without requests that follows, are no silence of the server.
func TestGateIsNotSilentWhileIdle(t *testing.T) {
	for name, end := range map[string]func(Pass){"canceled": func(p Pass) { p.Leave(false) }, "not sent": Pass.abandon} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(8)
			ctx, cancel := context.WithCancel(t.Context())
			var passes []Pass
			for range 3 {
				p, err := g.Enter(ctx, Request{})
				if err != nil {
					t.Fatal(err)
				}
				passes = append(passes, p)
				time.Sleep(time.Millisecond)
			}
			cancel()
			for _, p := range passes {
				end(p)
			}
			time.Sleep(time.Hour)
			if g.silent() {
				t.Errorf("the server is silent after requests that were %s", name)
			}
		})
	}
}

// If callers wait for a shorter time than those before, the next probe is sent sooner.
func TestGateSendsTheNextProbeSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(8)
		enter := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := g.Enter(ctx, Request{Urgent: true})
			return err
		}
		for range 2 { // the second one is a probe
			time.Sleep(16 * time.Minute)
			if err := enter(time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		var sent atomic.Int32
		for range 200 {
			go func() {
				if enter(5*time.Second) == nil {
					sent.Add(1)
				}
			}()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		if sent.Load() == 0 {
			t.Error("no request of 5 s was sent within 20 s")
		}
	})
}

// The Gate concludes from an answer how much the server can do only if requests wait, at the Gate or in a Batcher, and
// if the request could not have contained more renewals.
func TestGateSeesWhenTheServerIsAtItsLimit(t *testing.T) {
	for _, c := range []struct{ waits, behind, partial, limit bool }{
		{}, {waits: true, limit: true}, {behind: true, limit: true}, {waits: true, behind: true, partial: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := NewGate(1)
			g.room.began = time.Now()
			pass, _ := g.Enter(t.Context(), Request{Urgent: true, Renewals: 1, Partial: c.partial})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.waits {
				go func() { _, _ = g.Enter(ctx, Request{}) }()
				synctest.Wait()
			}
			if c.behind {
				g.fallBehind(1)
			}
			if pass.Leave(true); g.room.idle == c.limit || g.room.renewals != 1 {
				t.Errorf("%+v: idle %v, after %d renewals", c, g.room.idle, g.room.renewals)
			}
		})
	}
}
