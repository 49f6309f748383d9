package tasks_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/internal/tasks"
)

// closes expects that Close returns after the given time.
func closes(t *testing.T, g *tasks.Group, after time.Duration) {
	t.Helper()
	began := time.Now()
	if err := g.Close(t.Context()); err != nil || time.Since(began) != after {
		t.Errorf("closed after %v: %v; want %v", time.Since(began), err, after)
	}
}

// Close waits for every task, even one that begins during Close or ends its goroutine.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g tasks.Group
		closes(t, &g, 0)
		g.Start(func() { time.Sleep(time.Second) })()
		g.Start(func() {
			time.Sleep(2 * time.Second)
			g.Start(func() { time.Sleep(time.Second); runtime.Goexit() })()
		})()
		go g.Run(func() { time.Sleep(time.Second) })
		synctest.Wait()
		closes(t, &g, 3*time.Second)
		closes(t, &g, 0)
	})
}

// Close returns when its context ends. Several goroutines may call Close.
func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g tasks.Group
		free := make(chan struct{})
		g.Start(func() { <-free })()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 {
			if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
		}
		for range 3 {
			go closes(t, &g, time.Second)
		}
		time.Sleep(time.Second)
		close(free)
		synctest.Wait()
	})
}

func TestAsk(t *testing.T) {
	errBad := errors.New("bad")
	for name, c := range map[string]struct {
		f    func(context.Context) (int, error)
		want int
		ok   bool
		took time.Duration
	}{
		"answers":               {func(context.Context) (int, error) { time.Sleep(time.Second); return 7, nil }, 7, true, time.Second},
		"fails":                 {func(context.Context) (int, error) { return 7, errBad }, 0, false, 0},
		"ends":                  {func(context.Context) (int, error) { runtime.Goexit(); return 7, nil }, 0, false, 0},
		"ignores its context":   {func(context.Context) (int, error) { time.Sleep(time.Hour); return 7, nil }, 0, false, time.Minute},
		"ends with its context": {func(ctx context.Context) (int, error) { <-ctx.Done(); return 7, ctx.Err() }, 0, false, time.Minute},
		"is just in time":       {func(context.Context) (int, error) { time.Sleep(time.Minute - 1); return 7, nil }, 7, true, time.Minute - 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g tasks.Group
				var running tasks.Count
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began := time.Now()
				got, ok := tasks.Ask(ctx, &g, &running, 1, c.f)
				if got != c.want || ok != c.ok || time.Since(began) != c.took {
					t.Errorf("%d, %v after %v", got, ok, time.Since(began))
				}
				if err := g.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Ask limits the number of calls that run at once. After Close, Ask calls no function.
func TestAskIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g tasks.Group
		var running, others tasks.Count
		called := 0
		hang := func(context.Context) (int, error) { called++; time.Sleep(time.Hour); return 0, nil }
		now := func(context.Context) (int, error) { called++; return 0, nil }
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			tasks.Ask(ctx, &g, &running, 3, hang)
			cancel()
			synctest.Wait()
		}
		if called != 3 {
			t.Errorf("%d calls at once", called)
		}
		if _, ok := tasks.Ask(t.Context(), &g, &others, 3, now); !ok {
			t.Error("not asked, because of another Count")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, ok := tasks.Ask(t.Context(), &g, &running, 3, now); !ok {
			t.Error("not asked, though none is running")
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := tasks.Ask(done, &g, &running, 3, now); ok {
			t.Error("asked under a context that was done")
		}
		synctest.Wait()
		closes(t, &g, 0)
		if _, ok := tasks.Ask(t.Context(), &g, &running, 3, now); ok || called != 5 {
			t.Errorf("asked by a Group that is closed; %d calls", called)
		}
	})
}

// EvenOnExit calls f after a return and after a Goexit, but not after a panic.
func TestEvenOnExit(t *testing.T) {
	for name, c := range map[string]struct {
		f    func()
		want bool
	}{
		"return": {func() {}, true},
		"goexit": {runtime.Goexit, true},
		"panic":  {func() { panic("p") }, false},
	} {
		done, ran := make(chan any), false
		go func() {
			defer func() { done <- recover() }()
			defer tasks.EvenOnExit(func() { ran = true })
			c.f()
		}()
		if panicked := <-done; ran != c.want || (panicked != nil) != (name == "panic") {
			t.Errorf("%s: ran: %v, panicked: %v", name, ran, panicked)
		}
	}
}
