package memory_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease/memory"
)

func watch(tb testing.TB, s *memory.Store, ctx context.Context, name string) <-chan struct{} {
	tb.Helper()
	signals, err := s.Watch(ctx, name)
	if err != nil {
		tb.Fatal(err)
	}
	return signals
}

// signalled receives a signal if the channel has one, and reports whether the channel is open.
func signalled(signals <-chan struct{}) (is, open bool) {
	select {
	case _, open := <-signals:
		return open, open
	default:
		return false, true
	}
}

// A watch continues after the Store has forgotten the name.
func TestWatchOverForgetting(t *testing.T) {
	s := memory.New(nil)
	a := s.Authority()
	signals := watch(t, s, t.Context(), "a")
	do(t, a, "a", acquire)
	do(t, a, "a", release)
	signalled(signals)
	once(t, a, "other-", 3*memory.Idle)
	if got := load(t, s, "a"); !got.Record.ID.IsZero() {
		t.Fatalf("not forgotten: %+v", got)
	}
	if is, open := signalled(signals); !is || !open {
		t.Errorf("forgetting: signalled %v, open %v", is, open)
	}
	do(t, a, "a", acquire)
	if is, open := signalled(signals); !is || !open {
		t.Errorf("after forgetting: signalled %v, open %v", is, open)
	}
}

// A watch has no goroutine. When its context ends, its channel is closed and its memory is freed.
func TestWatchEnds(t *testing.T) {
	s := memory.New(nil)
	a := s.Authority()
	do(t, a, "a", acquire)
	const n, rounds = 1_000, 40
	round := 0
	end := func(t *testing.T) {
		round++
		ctx, cancel := context.WithCancel(t.Context())
		before := goroutines()
		all := make([]<-chan struct{}, n)
		for i := range all {
			all[i] = watch(t, s, ctx, fmt.Sprint(round, "-", i))
		}
		notified, stays := watch(t, s, ctx, "a"), watch(t, s, t.Context(), "a")
		do(t, a, "a", renew)
		synctest.Wait()
		if now := goroutines(); now > before {
			t.Errorf("%d watches: from %d goroutines to %d", n, before, now)
		}
		cancel()
		synctest.Wait()
		for i, signals := range all {
			if _, open := signalled(signals); open {
				t.Fatalf("watch %d is open after its context", i)
			}
		}
		if is, _ := signalled(notified); !is {
			t.Error("a signal was lost at the end of its watch")
		}
		if _, open := signalled(notified); open {
			t.Error("a watch is open after its context and its last signal")
		}
		signalled(stays)
		do(t, a, "a", renew) // does not send on the closed channel
		if is, open := signalled(stays); !is || !open {
			t.Errorf("another watch of the name: signalled %v, open %v", is, open)
		}
	}
	synctest.Test(t, end) // from here on, the runtime keeps the memory of ended goroutines
	before := heap()
	for range rounds {
		synctest.Test(t, end)
	}
	if grown := int64(heap() - before); grown > 20*n*rounds {
		t.Errorf("%d bytes are kept of %d watches that ended", grown, n*rounds)
	}
	runtime.KeepAlive(s)
}

// goroutines returns how many goroutines are running. In contrast, runtime.NumGoroutine also counts
// dead goroutines until the runtime has freed their stacks.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return 1 + bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("\ngoroutine "))
}
