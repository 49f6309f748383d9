package controllerruntime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/adapters/controllerruntime"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

const name = "leader"

// The defaults of controller-runtime.
const (
	duration = 15 * time.Second
	deadline = 10 * time.Second
	retry    = 2 * time.Second
)

func newLock(t testing.TB, a lease.Authority, identity string) *controllerruntime.Lock {
	t.Helper()
	l, err := controllerruntime.NewLock(a, name, identity, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// elect runs an elector with a lock until ctx ends. It calls began when it leads, and ended when it
// does not any more.
func elect(ctx context.Context, t testing.TB, lock resourcelock.Interface, releaseOnCancel bool, began, ended func()) {
	t.Helper()
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry, ReleaseOnCancel: releaseOnCancel,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { began() }, OnStoppedLeading: ended},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Run(klog.NewContext(ctx, klog.Logger{}))
}

func inspect(t testing.TB, a lease.Authority) lease.Record {
	t.Helper()
	res, err := lease.Inspect(t.Context(), a, name)
	if err != nil {
		t.Fatal(err)
	}
	return res.Record
}

// Two electors have one leader. It renews, and keeps its token; when it has released or died, the
// other leads with a newer one.
func TestElectorsOverALock(t *testing.T) {
	for _, end := range []string{"releases", "dies"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := memory.New(nil).Authority()
				var cut atomic.Bool
				locks := []*controllerruntime.Lock{
					newLock(t, leasefault.Script(a, leasefault.Always(leasefault.Any, leasefault.If(cut.Load, leasefault.FailRequest))), "first"),
					newLock(t, a, "second"),
				}
				var leads [2]atomic.Bool
				var stops [2]context.CancelFunc
				ends := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
				for i, lock := range locks {
					ctx, cancel := context.WithCancel(t.Context())
					stops[i] = cancel
					go func() {
						defer close(ends[i])
						elect(ctx, t, lock, end == "releases", func() { leads[i].Store(true) }, func() { leads[i].Store(false) })
					}()
					synctest.Wait()
				}
				time.Sleep(10 * duration)
				synctest.Wait()
				first := inspect(t, a)
				if !leads[0].Load() || leads[1].Load() || first.Owner != "first" || first.State != lease.Leased || first.Duration != duration || first.Epoch != 1 || locks[0].Token() != first.Token() || locks[1].Token() != "" {
					t.Fatalf("the electors lead: %v, %v, and the lease is %v", leads[0].Load(), leads[1].Load(), first)
				}
				began := time.Now()
				cut.Store(end == "dies")
				stops[0]()
				<-ends[0]
				for !leads[1].Load() {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				most := retry + retry*6/5 // it tries each RetryPeriod, jittered
				if end == "dies" {
					most += duration
				}
				if took := time.Since(began); took > most || end == "dies" && took < duration-retry {
					t.Errorf("the second leads %v after the first %s", took, end)
				}
				if tok := locks[1].Token(); tok.Compare(first.Token()) <= 0 || tok != inspect(t, a).Token() || end == "releases" && locks[0].Token() != "" {
					t.Errorf("token %s after %s", tok, first.Token())
				}
				stops[1]()
				<-ends[1]
			})
		})
	}
}

// A Lock is what an elector expects of one: a refusal is a conflict, an unknown outcome is asked for
// again with the same ID, and nothing but what was granted is released.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(nil).Authority()
		ctx := t.Context()
		lost := leasefault.Script(a, leasefault.First(1, lease.ActionAcquire, leasefault.FailAnswer))
		first, second := newLock(t, lost, "first"), newLock(t, a, "second")
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 15}
		theirs := resourcelock.LeaderElectionRecord{HolderIdentity: "second", LeaseDurationSeconds: 15}

		if r, _, err := first.Get(ctx); err != nil || r.HolderIdentity != "" {
			t.Errorf("a lease that nobody has held is %+v, %v", r, err)
		}
		if err := first.Create(ctx, mine); !errors.Is(err, leasefault.ErrInjected) || first.Token() != "" {
			t.Errorf("an answer that is lost: %v", err)
		}
		id := inspect(t, a).ID
		if err := first.Update(ctx, mine); err != nil || inspect(t, a).ID != id || inspect(t, a).Epoch != 2 {
			t.Errorf("after it: %v, %v", err, inspect(t, a))
		}
		if err := second.Update(ctx, theirs); !apierrors.IsConflict(err) {
			t.Errorf("an update by another: %v", err)
		}
		_, before, _ := second.Get(ctx)
		time.Sleep(time.Millisecond)
		if err := first.Update(ctx, mine); err != nil || inspect(t, a).Epoch != 2 {
			t.Errorf("a renewal: %v, %v", err, inspect(t, a))
		}
		r, after, err := second.Get(ctx)
		if err != nil || r.HolderIdentity != "first" || r.LeaseDurationSeconds != 15 || string(before) == string(after) {
			t.Errorf("after a renewal it is %+v, %v", r, err)
		}
		if err := second.Update(ctx, resourcelock.LeaderElectionRecord{}); err != nil || inspect(t, a).ID != id {
			t.Errorf("a release by another: %v, %v", err, inspect(t, a))
		}
		if err := first.Update(ctx, theirs); err == nil || apierrors.IsConflict(err) {
			t.Errorf("another's identity: %v", err)
		}
		if _, err := lease.Break(ctx, a, name, lease.Grace(0)); err != nil {
			t.Fatal(err)
		}
		if err := first.Update(ctx, mine); !apierrors.IsConflict(err) || !errors.Is(err, lease.ErrBroken) && first.Token() != "" {
			t.Errorf("a renewal after a break: %v, token %q", err, first.Token())
		}
		if err := second.Update(ctx, theirs); err != nil {
			t.Error(err)
		}
		if err := second.Update(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil || inspect(t, a).State != lease.Available || second.Token() != "" {
			t.Errorf("a release: %v, %v", err, inspect(t, a))
		}
		if first.Identity() != "first" || first.Describe() != name {
			t.Errorf("%s, %s", first.Identity(), first.Describe())
		}
	})
}

func TestNewLock(t *testing.T) {
	a := memory.New(nil).Authority()
	for what, err := range map[string]error{
		"NewLock.a":               second(controllerruntime.NewLock(nil, name, "x", nil)),
		"Name":                    second(controllerruntime.NewLock(a, "", "x", nil)),
		"Owner":                   second(controllerruntime.NewLock(a, name, "", nil)),
		"LockOptions.RetryPeriod": second(controllerruntime.NewLock(a, name, "x", &controllerruntime.LockOptions{RetryPeriod: -1})),
	} {
		field := new(lease.FieldError)
		if !errors.As(err, &field) || field.Field != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
