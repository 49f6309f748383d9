package provider_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/provider"
)

// fake is a lease that remembers what it was made of and how often it was given up.
type fake struct {
	lease.Lease // nil: nothing else is called
	name, owner string
	settings    provider.Settings
	released    atomic.Int64
	err         error
}

func (f *fake) Release(context.Context) error { f.released.Add(1); return f.err }

// closing is a fake with something to close.
type closing struct {
	fake
	closed atomic.Int64
}

func (c *closing) Close(context.Context) error { c.closed.Add(1); return c.err }

func newFake(name, owner string, s provider.Settings) (lease.Lease, error) {
	return &fake{name: name, owner: owner, settings: s}, nil
}

func register(t testing.TB, r *provider.Registry, kind string, p provider.Provider) {
	t.Helper()
	if err := r.Register(kind, p); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, r *provider.Registry, kind, name, owner string) lease.Lease {
	t.Helper()
	l, err := r.Lease(kind, name, owner)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// LeaseProviderSpec: name, owner and times are passed to the instance.
func TestLeasePassesNameOwnerAndSettings(t *testing.T) {
	want := provider.Settings{Duration: 100 * time.Second, RenewInterval: time.Second, RequestTimeout: 2 * time.Second, RetryDelay: 3 * time.Second}
	r, err := provider.New(&want)
	if err != nil {
		t.Fatal(err)
	}
	register(t, r, "kind", newFake)
	l := get(t, r, "kind", "name", "owner").(*fake)
	if l.name != "name" || l.owner != "owner" || l.settings != want {
		t.Errorf("made %q of %q with %+v", l.name, l.owner, l.settings)
	}
}

// LeaseProviderSpec: defaults are loaded for the times that are not specified.
func TestLeasePassesDefaults(t *testing.T) {
	want := provider.Settings{Duration: 30 * time.Second, RenewInterval: 10 * time.Second, RequestTimeout: 5 * time.Second, RetryDelay: 2500 * time.Millisecond}
	byNil, err := provider.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*provider.Registry{"zero": new(provider.Registry), "nil": byNil} {
		register(t, r, "kind", newFake)
		if got := get(t, r, "kind", "name", "owner").(*fake).settings; got != want || r.Settings() != want {
			t.Errorf("%s: %+v, %+v; want %+v", name, got, r.Settings(), want)
		}
	}
}

// LeaseProviderSpec: the same instance for the same name, kind and owner; another for
// another name; another for another owner. And another for another kind.
//
// SPEC P1.
func TestLeaseIsTheSameInstanceForTheSameKey(t *testing.T) {
	var r provider.Registry
	register(t, &r, "kind", newFake)
	register(t, &r, "other", newFake)
	l := get(t, &r, "kind", "name", "owner")
	if get(t, &r, "kind", "name", "owner") != l {
		t.Error("the same key gave another instance")
	}
	seen := map[lease.Lease]string{l: "kind/name/owner"}
	for _, k := range [][3]string{
		{"kind", "other", "owner"}, {"kind", "name", "other"}, {"other", "name", "owner"},
		{"kind", "nameo", "wner"}, {"kind", "na", "meowner"}, // no key is another's by where it is cut
	} {
		l := get(t, &r, k[0], k[1], k[2])
		if first, ok := seen[l]; ok {
			t.Errorf("%v gave the instance of %v", k, first)
		}
		seen[l] = strings.Join(k[:], "/")
	}
}

// LeaseProviderSpec: a missing and an unknown class are errors. Here they say what there is.
//
// SPEC P2.
func TestUnknownKindSaysWhichThereAre(t *testing.T) {
	var r provider.Registry
	var field *lease.FieldError
	_, err := r.Lease("redis", "name", "owner")
	if !errors.As(err, &field) || *field != (lease.FieldError{Field: "kind", Value: `"redis"`, Bound: "must be registered first: there is no kind yet", Code: lease.ErrOption}) {
		t.Errorf("no kind: %v", err)
	}
	for _, kind := range []string{"pg", "memory", "azure"} {
		register(t, &r, kind, newFake)
	}
	for _, kind := range []string{"redis", "", "PG", strings.Repeat("x", 1<<20)} {
		l, err := r.Lease(kind, "name", "owner")
		if l != nil || !errors.As(err, &field) || field.Field != "kind" || field.Bound != `must be one of "azure", "memory", "pg"` {
			t.Errorf("%.9q: %v, %v", kind, l, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	var r provider.Registry
	register(t, &r, "kind", newFake)
	for _, c := range []struct {
		name, kind string
		p          provider.Provider
		want       string
	}{
		{"duplicate", "kind", func(string, string, provider.Settings) (lease.Lease, error) { return nil, nil }, `kind = "kind": is registered already`},
		{"nil", "other", nil, "Register.p = nil: must be given"},
		{"empty", "", newFake, `kind = "": must be valid UTF-8 of 1 to 1024 bytes without NUL`},
		{"NUL", "a\x00", newFake, `kind = "a\x00": must be valid UTF-8 of 1 to 1024 bytes without NUL`},
	} {
		err := r.Register(c.kind, c.p)
		if lease.CodeOf(err) != lease.ErrOption || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := r.Lease("other", "name", "owner"); err == nil {
		t.Error("a refused provider was registered")
	}
	if _, ok := get(t, &r, "kind", "name", "owner").(*fake); !ok {
		t.Error("a refused provider replaced the first")
	}
}

func TestLeaseRefusesBadNamesAndOwners(t *testing.T) {
	var r provider.Registry
	register(t, &r, "kind", func(string, string, provider.Settings) (lease.Lease, error) {
		t.Error("the provider was called")
		return nil, nil
	})
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("x", lease.MaxLabel+1)} {
		if _, err := r.Lease("kind", bad, "owner"); !errors.Is(err, lease.ErrName) || errors.Is(err, lease.ErrOwner) {
			t.Errorf("name %.9q: %v, want ErrName", bad, err)
		}
		if _, err := r.Lease("kind", "name", bad); !errors.Is(err, lease.ErrOwner) || errors.Is(err, lease.ErrName) {
			t.Errorf("owner %.9q: %v, want ErrOwner", bad, err)
		}
		if _, err := r.Lease("kind", bad, bad); !errors.Is(err, lease.ErrOwner) || !errors.Is(err, lease.ErrName) {
			t.Errorf("both %.9q: %v, want ErrName and ErrOwner", bad, err)
		}
	}
}

// A Registry that is closed takes no kind; what is wrong with one is told first.
func TestRegisterAfterClose(t *testing.T) {
	var r provider.Registry
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Register("kind", newFake); err != lease.ErrClosed {
		t.Errorf("Register: %v, want ErrClosed", err)
	}
	if err := r.Register("", nil); lease.CodeOf(err) != lease.ErrOption {
		t.Errorf("Register of a bad kind: %v, want ErrOption", err)
	}
}

// A failing provider is called again by the next call; one that fails, makes nothing or
// panics spoils nothing.
func TestAFailedProviderIsNotKept(t *testing.T) {
	errMade := errors.New("cannot")
	var r provider.Registry
	calls := 0
	register(t, &r, "kind", func(name, owner string, s provider.Settings) (lease.Lease, error) {
		switch calls++; calls {
		case 1:
			return &fake{}, errMade
		case 2:
			return nil, nil
		case 3:
			return (*fake)(nil), nil
		case 4:
			panic(errMade)
		case 5:
			runtime.Goexit()
		}
		return newFake(name, owner, s)
	})
	if l, err := r.Lease("kind", "name", "owner"); l != nil || err != errMade {
		t.Errorf("%v, %v; want the provider's error", l, err)
	}
	for range 2 { // nil, and a nil pointer
		if l, err := r.Lease("kind", "name", "owner"); l != nil || err == nil || err.Error() != `provider: kind "kind" made no lease` {
			t.Errorf("%v, %v; want an error", l, err)
		}
	}
	func() {
		defer func() {
			if p := recover(); p != errMade {
				t.Errorf("recovered %v, want the provider's panic", p)
			}
		}()
		l, err := r.Lease("kind", "name", "owner")
		t.Errorf("%v, %v; want a panic", l, err)
	}()
	var wg sync.WaitGroup
	wg.Go(func() { r.Lease("kind", "name", "owner") })
	wg.Wait()
	l := get(t, &r, "kind", "name", "owner")
	if get(t, &r, "kind", "name", "owner") != l || calls != 6 {
		t.Errorf("%d calls of the provider, want 6", calls)
	}
}

// However many ask at the same time, one instance is made; and making it holds up nobody
// who asks for another.
//
// SPEC P1.
func TestConcurrentCallsGetOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r provider.Registry
		var calls atomic.Int64
		register(t, &r, "slow", func(name, owner string, s provider.Settings) (lease.Lease, error) {
			calls.Add(1)
			time.Sleep(time.Second)
			return newFake(name, owner, s)
		})
		start := time.Now()
		got := make([][]lease.Lease, 3)
		var wg sync.WaitGroup
		for name := range got {
			got[name] = make([]lease.Lease, 20)
			for i := range got[name] {
				wg.Go(func() { got[name][i] = get(t, &r, "slow", fmt.Sprint(name), "owner") })
			}
		}
		wg.Wait()
		if calls.Load() != 3 || time.Since(start) != time.Second {
			t.Errorf("%d calls of the provider in %v, want 3 in 1s", calls.Load(), time.Since(start))
		}
		for name := range got {
			for _, l := range got[name] {
				if l != got[name][0] || l == nil {
					t.Fatalf("name %d: different instances", name)
				}
			}
		}
	})
}

// Those who wait for a provider are told of its failure, or of its panic.
func TestWaitersShareAFailure(t *testing.T) {
	errMade := errors.New("cannot")
	for _, panics := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var r provider.Registry
			register(t, &r, "kind", func(string, string, provider.Settings) (lease.Lease, error) {
				time.Sleep(time.Second)
				if panics {
					panic(errMade)
				}
				return nil, errMade
			})
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() {
					if p := recover(); (p == errMade) != panics {
						t.Errorf("recovered %v", p)
					}
				}()
				r.Lease("kind", "name", "owner")
			})
			synctest.Wait()
			for range 3 {
				wg.Go(func() {
					l, err := r.Lease("kind", "name", "owner")
					if l != nil || err == nil || (err == errMade) == panics {
						t.Errorf("panics %v: %v, %v", panics, l, err)
					}
				})
			}
			wg.Wait()
		})
	}
}

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
		t.Error("a lease that was dropped was given again")
	}

	c := get(t, &r, "closer", "name", "owner").(*closing)
	c.err = errors.New("cannot")
	err := r.Drop(t.Context(), "closer", "name", "owner")
	if !errors.Is(err, c.err) || err.Error() != `provider: giving up closer "name" of "owner": cannot` {
		t.Errorf("err = %v", err)
	}
	if c.closed.Load() != 1 || c.released.Load() != 0 {
		t.Errorf("closed %d times, released %d times", c.closed.Load(), c.released.Load())
	}
	if get(t, &r, "closer", "name", "owner") == lease.Lease(c) {
		t.Error("a lease that failed to close was given again")
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
	want := `provider: giving up closer "name" of "owner": A` + "\n" + `provider: giving up kind "bad" of "owner": B`
	if err := r.Close(t.Context()); err == nil || err.Error() != want || !errors.Is(err, errA) || !errors.Is(err, errB) {
		t.Errorf("err = %v, want %s", err, want)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	if fine.released.Load() != 1 || bad.released.Load() != 1 || c.closed.Load() != 1 || c.released.Load() != 0 {
		t.Error("not every lease was given up once")
	}
	for _, kind := range []string{"kind", "unknown"} {
		if l, err := r.Lease(kind, "fine", "owner"); l != nil || err != lease.ErrClosed {
			t.Errorf("%s after Close: %v, %v; want ErrClosed", kind, l, err)
		}
	}
	if err := new(provider.Registry).Close(t.Context()); err != nil {
		t.Errorf("the zero Registry: %v", err)
	}
}

// Drop and Close do not wait for a lease that is being made. Drop leaves it alone. Close tells
// those who wait at once, however long the provider takes; the one who called it is told when
// it returns, and gives up what it made.
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
				if l, err := r.Lease("slow", "name", "owner"); l != nil || err != lease.ErrClosed || time.Since(start) != want {
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

// Whatever a provider does after Close, there is nothing left of it.
func TestAProviderThatFailsAfterClose(t *testing.T) {
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
			if l, err := r.Lease("kind", "name", "owner"); l != nil || err != lease.ErrClosed {
				t.Errorf("%v, %v; want ErrClosed", l, err)
			}
		})
	}
}

// Close gives up all leases at the same time.
func TestCloseDoesNotQueue(t *testing.T) {
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

// hanging is a lease whose release takes as long as it may.
type hanging struct{ lease.Lease }

func (hanging) Release(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
