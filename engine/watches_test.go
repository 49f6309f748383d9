package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fencedlease/lease/engine"
)

// received receives a signal if there is one, and reports whether the channel is open.
func received(signals <-chan struct{}) (signal, open bool) {
	select {
	case _, open := <-signals:
		return open, open
	default:
		return false, true
	}
}

// wantWatch fails the test unless a channel has a signal, or none, and is open, or closed.
func wantWatch(t *testing.T, what string, signals <-chan struct{}, signal, open bool) {
	t.Helper()
	if s, o := received(signals); s != signal || o != open {
		t.Errorf("%s: signal %v, open %v, want %v, %v", what, s, o, signal, open)
	}
}

func add[V any](t *testing.T, w *engine.Watches[V], ctx context.Context, name string, v V) <-chan struct{} {
	t.Helper()
	c, err := w.Add(ctx, name, v)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A signal reaches all watches of its name, and no others. Several signals that were not received are one.
func TestWatchesSignal(t *testing.T) {
	var w engine.Watches[struct{}]
	w.Signal("a") // without a watch
	a, b, other := add(t, &w, t.Context(), "a", struct{}{}), add(t, &w, t.Context(), "a", struct{}{}), add(t, &w, t.Context(), "o", struct{}{})
	wantWatch(t, "a new watch", a, false, true)
	w.Signal("a")
	w.Signal("a")
	wantWatch(t, "the first", a, true, true)
	wantWatch(t, "the second", b, true, true)
	wantWatch(t, "another name", other, false, true)
	wantWatch(t, "a second signal", a, false, true)
}

// The value of a name is that of its first watch until Update changes it, and is forgotten with its last watch.
func TestWatchesValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w engine.Watches[int]
		set := func(to int, signal bool) (was int) {
			was = -1
			w.Update("a", func(v *int) bool { was, *v = *v, to; return signal })
			return was
		}
		if was := set(1, true); was != -1 {
			t.Errorf("Update without a watch was called with %d", was)
		}
		one, end := context.WithCancel(t.Context())
		c := add(t, &w, one, "a", 1)
		two, endTwo := context.WithCancel(t.Context())
		add(t, &w, two, "a", 2)
		if was := set(3, false); was != 1 {
			t.Errorf("the value of the first watch is %d, want 1", was)
		}
		wantWatch(t, "an Update that returns false", c, false, true)
		if all := w.All(); len(all) != 1 || all["a"] != 3 {
			t.Errorf("all: %v", all)
		}
		end()
		synctest.Wait()
		wantWatch(t, "after its context", c, false, false)
		if was := set(4, true); was != 3 {
			t.Errorf("after the end of one watch: %d, want 3", was)
		}
		endTwo()
		synctest.Wait()
		if all := w.All(); len(all) != 0 {
			t.Errorf("after all watches: %v", all)
		}
		add(t, &w, t.Context(), "a", 5)
		if was := set(6, true); was != 5 {
			t.Errorf("of a watch after all have ended: %d, want 5", was)
		}
	})
}

// Close closes all channels once, keeps the signals that were not received, and lets nothing be added.
func TestWatchesClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w engine.Watches[struct{}]
		lost := errors.New("lost")
		ctx, cancel := context.WithCancel(t.Context())
		a, b := add(t, &w, ctx, "a", struct{}{}), add(t, &w, t.Context(), "b", struct{}{})
		w.Signal("a")
		if w.Err() != nil || !w.Close(lost) || w.Close(errors.New("again")) {
			t.Error("not closed, or closed twice")
		}
		wantWatch(t, "the last signal", a, true, true)
		wantWatch(t, "after it", a, false, false)
		wantWatch(t, "another", b, false, false)
		if _, err := w.Add(ctx, "a", struct{}{}); err != lost || w.Err() != lost {
			t.Errorf("a watch after Close: %v, %v", err, w.Err())
		}
		w.Signal("a")
		cancel() // does not close a channel twice
		synctest.Wait()
	})
}

// Signals, new watches, contexts that end and a Close at the same time neither race nor close a channel twice.
func TestWatchesRace(t *testing.T) {
	for range 500 {
		var w engine.Watches[int]
		var all sync.WaitGroup
		for range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			c, err := w.Add(ctx, "a", 0)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(cancel)
			all.Go(func() {
				w.Signal("a")
				w.All()
			})
			all.Go(func() {
				for range c {
				}
			})
		}
		all.Go(func() { w.Close(context.Canceled) })
		all.Wait()
	}
}
