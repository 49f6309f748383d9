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
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/provider"
)

// A fake lease records its arguments and counts its releases.
type fake struct {
	lease.Lease // nil, because the tests call no other methods
	name, owner string
	settings    provider.Settings
	released    atomic.Int64
	err         error
}

func (f *fake) Release(context.Context) error { f.released.Add(1); return f.err }

// A closing lease is a fake that is a Closer.
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

// LeaseProviderSpec: a Registry passes the name, the owner and the times to the lease, with the defaults of the times
// that are not specified.
func TestLeasePassesItsArguments(t *testing.T) {
	set := provider.Settings{Duration: 100 * s, RenewInterval: s, RequestTimeout: 2 * s, RetryDelay: 3 * s}
	defaults := provider.Settings{Duration: 30 * s, RenewInterval: 10 * s, RequestTimeout: 5 * s, RetryDelay: 2500 * time.Millisecond}
	bySettings, err1 := provider.New(&set)
	byNil, err2 := provider.New(nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for r, want := range map[*provider.Registry]provider.Settings{bySettings: set, byNil: defaults, new(provider.Registry): defaults} {
		register(t, r, "kind", newFake)
		l := get(t, r, "kind", "name", "owner").(*fake)
		if l.name != "name" || l.owner != "owner" || l.settings != want || r.Settings() != want {
			t.Errorf("made %q of %q with %+v, %+v; want %+v", l.name, l.owner, l.settings, r.Settings(), want)
		}
	}
}

// LeaseProviderSpec: Lease returns the same instance for the same name, kind and owner, and a different one
// if any of them differs. SPEC P1.
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
		{"kind", "nameo", "wner"}, {"kind", "na", "meowner"}, // the concatenated texts are equal, but the keys differ
	} {
		l := get(t, &r, k[0], k[1], k[2])
		if first, ok := seen[l]; ok {
			t.Errorf("%v gave the instance of %v", k, first)
		}
		seen[l] = strings.Join(k[:], "/")
	}
}

// LeaseProviderSpec: a missing class and an unknown class are errors. In this package, the error for an
// unknown kind lists the registered kinds. SPEC P2.
func TestUnknownKindListsTheKinds(t *testing.T) {
	var r provider.Registry
	var field *lease.FieldError
	_, err := r.Lease("redis", "name", "owner")
	if !errors.As(err, &field) || *field != (lease.FieldError{Field: "kind", Value: `"redis"`, Bound: "must be registered first; no kind is registered", Code: lease.ErrOption}) {
		t.Errorf("no kind: %v", err)
	}
	for _, kind := range []string{"pg", "memory", "azure"} {
		register(t, &r, kind, newFake)
	}
	for _, kind := range []string{"redis", "", "PG", strings.Repeat("x", 1<<20)} {
		l, err := r.Lease(kind, "name", "owner")
		if l != nil || !errors.As(err, &field) || field.Field != "kind" || field.Bound != `must be one of the registered kinds: "azure", "memory", "pg"` {
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
		{"duplicate", "kind", func(string, string, provider.Settings) (lease.Lease, error) { return nil, nil }, `kind = "kind": is already registered`},
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
	for _, bad := range []string{"", "a\x00b", "\xff", strings.Repeat("x", fields.MaxLabel+1)} {
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

// A closed Registry registers no kind, but still reports a bad argument as a bad argument.
func TestRegisterAfterClose(t *testing.T) {
	var r provider.Registry
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Register("kind", newFake); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("Register: %v, want ErrClosed", err)
	}
	if err := r.Register("", nil); lease.CodeOf(err) != lease.ErrOption {
		t.Errorf("Register of a bad kind: %v, want ErrOption", err)
	}
}

// If a Provider returns an error or no lease, or panics, the next call of Lease calls it again.
func TestFailedProviderIsCalledAgain(t *testing.T) {
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
	if l, err := r.Lease("kind", "name", "owner"); l != nil || !errors.Is(err, errMade) || err.Error() != `provider: kind "kind": cannot` {
		t.Errorf("%v, %v; want the provider's error, with the kind", l, err)
	}
	for range 2 { // the Provider returns nil, and then a nil pointer
		if l, err := r.Lease("kind", "name", "owner"); l != nil || err == nil || err.Error() != `provider: kind "kind": the provider made no lease` {
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

// Concurrent calls of Lease with equal arguments get one instance. A call for another lease does not wait
// for the Provider of the first. SPEC P1.
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

// If the Provider fails, the calls that wait for it return its error. If it panics, they return an error.
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
					if l != nil || err == nil || errors.Is(err, errMade) == panics || !strings.HasPrefix(err.Error(), `provider: kind "kind": `) {
						t.Errorf("panics %v: %v, %v", panics, l, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
