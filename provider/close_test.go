package provider_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/provider"
)

func TestDrop(t *testing.T) {
	var r provider.Registry
	register(t, &r, "kind", newFake)
	register(t, &r, "closer", func(string, string, provider.Settings) (lease.Lease, error) { return new(closing), nil })

	l := get(t, &r, "kind", "name", "owner").(*fake)
	if err := r.Drop(t.Context(), "kind", "name", "another"); err != nil || l.released.Load() != 0 {
		t.Errorf("another: %v, released %d times", err, l.released.Load())
	}
	if err := r.Drop(t.Context(), "kind", "name", "owner"); err != nil || l.released.Load() != 1 {
		t.Errorf("%v, released %d times", err, l.released.Load())
	}
	if get(t, &r, "kind", "name", "owner") == lease.Lease(l) {
		t.Error("Lease returned a lease that was dropped")
	}

	c := get(t, &r, "closer", "name", "owner").(*closing)
	c.err = errors.New("cannot")
	err := r.Drop(t.Context(), "closer", "name", "owner")
	if !errors.Is(err, c.err) || err.Error() != `provider: cannot drop closer "name" of "owner": cannot` {
		t.Errorf("err = %v", err)
	}
	if c.closed.Load() != 1 || c.released.Load() != 0 {
		t.Errorf("closed %d times, released %d times", c.closed.Load(), c.released.Load())
	}
	if get(t, &r, "closer", "name", "owner") == lease.Lease(c) {
		t.Error("Lease returned a lease that failed to close")
	}
}

func TestClose(t *testing.T) {
	var r provider.Registry
	errA, errB := errors.New("A"), errors.New("B")
	register(t, &r, "kind", newFake)
	register(t, &r, "closer", func(string, string, provider.Settings) (lease.Lease, error) { return new(closing), nil })
	fine := get(t, &r, "kind", "fine", "owner").(*fake)
	bad := get(t, &r, "kind", "bad", "owner").(*fake)
	bad.err = errB
	c := get(t, &r, "closer", "name", "owner").(*closing)
	c.err = errA
	want := `provider: cannot drop closer "name" of "owner": A` + "\n" + `provider: cannot drop kind "bad" of "owner": B`
	if err := r.Close(t.Context()); err == nil || err.Error() != want || !errors.Is(err, errA) || !errors.Is(err, errB) {
		t.Errorf("err = %v, want %s", err, want)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if fine.released.Load() != 1 || bad.released.Load() != 1 || c.closed.Load() != 1 || c.released.Load() != 0 {
		t.Error("not every lease was dropped once")
	}
	for _, kind := range []string{"kind", "unknown"} {
		if l, err := r.Lease(kind, "fine", "owner"); l != nil || !errors.Is(err, lease.ErrClosed) {
			t.Errorf("%s after Close: %v, %v; want ErrClosed", kind, l, err)
		}
	}
	if err := new(provider.Registry).Close(t.Context()); err != nil {
		t.Errorf("the zero Registry: %v", err)
	}
}

// Drop and Close do not wait for a lease that a Provider is still making. Drop ignores it. Close ends the
// calls of Lease that wait for it at once. The call of Lease that runs the Provider ends when the Provider
// returns, and drops the lease.
func TestDropAndCloseWhileALeaseIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r provider.Registry
		made := new(closing)
		register(t, &r, "slow", func(string, string, provider.Settings) (lease.Lease, error) {
			time.Sleep(time.Hour)
			return made, nil
		})
		start := time.Now()
		var wg sync.WaitGroup
		ask := func(want time.Duration) {
			wg.Go(func() {
				if l, err := r.Lease("slow", "name", "owner"); l != nil || !errors.Is(err, lease.ErrClosed) || time.Since(start) != want {
					t.Errorf("%v, %v after %v; want ErrClosed after %v", l, err, time.Since(start), want)
				}
			})
			synctest.Wait()
		}
		ask(time.Hour)
		ask(time.Minute)
		ask(time.Minute)
		time.Sleep(time.Minute)
		if err := r.Drop(t.Context(), "slow", "name", "owner"); err != nil {
			t.Error(err)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if time.Since(start) != time.Minute {
			t.Errorf("waited %v", time.Since(start)-time.Minute)
		}
		wg.Wait()
		if made.closed.Load() != 1 {
			t.Errorf("closed %d times, want once", made.closed.Load())
		}
	})
}

// If a Provider fails or panics after Close, the Registry keeps no entry for the lease.
func TestProviderFailsAfterClose(t *testing.T) {
	for name, end := range map[string]func() (lease.Lease, error){
		"error": func() (lease.Lease, error) { return new(fake), errors.New("cannot") },
		"none":  func() (lease.Lease, error) { return nil, nil },
		"panic": func() (lease.Lease, error) { panic("cannot") },
	} {
		t.Run(name, func(t *testing.T) {
			var r provider.Registry
			register(t, &r, "kind", func(string, string, provider.Settings) (lease.Lease, error) {
				if err := r.Close(t.Context()); err != nil {
					t.Error(err)
				}
				return end()
			})
			defer func() {
				if p := recover(); (p == "cannot") != (name == "panic") {
					t.Errorf("recovered %v", p)
				}
				if err := r.Close(t.Context()); err != nil {
					t.Errorf("Close again: %v", err)
				}
			}()
			if l, err := r.Lease("kind", "name", "owner"); l != nil || !errors.Is(err, lease.ErrClosed) {
				t.Errorf("%v, %v; want ErrClosed", l, err)
			}
		})
	}
}

// Registry.Close drops all leases at the same time.
func TestCloseIsConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r provider.Registry
		register(t, &r, "kind", func(string, string, provider.Settings) (lease.Lease, error) { return hanging{}, nil })
		for i := range 10 {
			get(t, &r, "kind", fmt.Sprint(i), "owner")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// The Release of a hanging lease returns only when its context ends.
type hanging struct{ lease.Lease }

func (hanging) Release(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
