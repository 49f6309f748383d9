package pglease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

func TestGate(t *testing.T) {
	for _, s := range []struct{ size, spare int }{{1, 0}, {2, 1}, {4, 1}, {7, 1}, {16, 4}} {
		synctest.Test(t, func(t *testing.T) {
			g, ctx := newGate(s.size), t.Context()
			for range s.size - s.spare {
				if err := g.enter(ctx, false); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			var order []string
			enter := func(what string, urgent bool) {
				go func() {
					if err := g.enter(ctx, urgent); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order = append(order, what)
				}()
				synctest.Wait()
			}
			enter("other 1", false)
			enter("other 2", false)
			for range s.spare {
				enter("spare", true)
			}
			if want := slices.Repeat([]string{"spare"}, s.spare); !slices.Equal(order, want) {
				t.Fatalf("size %d: %v got in, want %v", s.size, order, want)
			}
			enter("urgent 1", true)
			enter("urgent 2", true)
			order = nil
			for range s.size + 3 { // every request that has entered the gate leaves it again
				g.leave()
				synctest.Wait()
			}
			if want := []string{"urgent 1", "urgent 2", "other 1", "other 2"}; !slices.Equal(order, want) {
				t.Errorf("size %d: %v got in, want %v", s.size, order, want)
			}
		})
	}
}

// If a request gives up, its place goes to the next one, and its error says what it waited for.
func TestGateIsLeftByContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		if err := g.enter(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		for _, urgent := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- g.enter(ctx, urgent) }()
			synctest.Wait()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "all 1 connections of the pool") {
				t.Errorf("urgent %v: %v", urgent, err)
			}
		}
		g.leave()
		if err := g.enter(t.Context(), false); err != nil {
			t.Error(err)
		}
	})
}

// While a notifier sends a batch, it collects new names. It then sends them together, each once.
func TestNotificationsShareOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, going := make(chan string, 10), make(chan struct{})
		n := &notifier{tasks: new(tasks.Group), send: func(_ context.Context, names string) error {
			sent <- names
			<-going
			return errors.New("it was not heard") // notify does not return this error
		}}
		notified := make(chan string, 10)
		notify := func(name string) {
			go func() { n.notify(t.Context(), name, time.UnixMicro(7)); notified <- name }()
			synctest.Wait()
		}
		notify("a")
		notify("b")
		notify("b")
		if len(notified) > 0 {
			t.Errorf("%s was notified before it was sent", <-notified)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		n.notify(done, "b", time.UnixMicro(8)) // does not wait for the batch
		going <- struct{}{}
		synctest.Wait()
		if len(sent) != 2 || len(notified) != 1 {
			t.Errorf("%d were sent, and %d calls have returned", len(sent), len(notified))
		}
		going <- struct{}{}
		n.tasks.Close(t.Context())
		synctest.Wait()
		if first, second := <-sent, <-sent; first != `["7 a"]` || second != `["8 b"]` || len(notified) != 3 {
			t.Errorf("%s and %s were sent, and %d calls have returned", first, second, len(notified))
		}
	})
}

// If there are more names than one sweep takes, no name is swept again before every name was swept once.
func TestSweepsTakeTurns(t *testing.T) {
	l := &listener{watched: map[string]*watched{}, time: serverTime{7, time.Now()}}
	const names = 2*sweepMost + 500
	for i := range names {
		if !l.add(fmt.Sprint("x", i), make(chan struct{}, 1)) {
			t.Fatal("the listener is lost")
		}
	}
	for round := range 2 {
		swept := map[string]int64{}
		for _, want := range []int{sweepMost, sweepMost, 500} {
			next := l.nextNames()
			if len(next) != want {
				t.Errorf("round %d: %d names, want %d", round, len(next), want)
			}
			for _, n := range next {
				swept[n.Name] = n.After
			}
		}
		if len(swept) != names {
			t.Errorf("round %d: %d names are looked at, of %d", round, len(swept), names)
		}
		if after := swept["x1"]; after < 7 {
			t.Errorf("changes are looked for from %d on, before the watch began", after)
		}
	}
}
