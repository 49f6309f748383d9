package controllerruntime_test

import (
	"context"
	"errors"
	"math"
	"strings"
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

// The constants are the defaults of controller-runtime.
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

// elect runs an elector with a lock until ctx ends. It calls began when the elector begins to lead, and ended
// when it no longer leads.
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

// Of two electors, one leads, renews its lease and keeps its token. When it has released the lease or
// crashed, the other leads with a newer token.
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
				if !leads[0].Load() || leads[1].Load() {
					t.Fatalf("the electors lead: %v, %v", leads[0].Load(), leads[1].Load())
				}
				if first.State != lease.Leased || first.Owner != "first" || first.Duration != duration || first.Epoch != 1 {
					t.Fatalf("the lease is %v", first)
				}
				if locks[0].Token() != first.Token() || locks[1].Token() != "" {
					t.Fatalf("the tokens are %q, %q, and the lease is %v", locks[0].Token(), locks[1].Token(), first)
				}
				began := time.Now()
				cut.Store(end == "dies")
				stops[0]()
				<-ends[0]
				for !leads[1].Load() {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
				}
				most := retry + retry*6/5 // an elector tries once in each RetryPeriod, with jitter
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

// A Lock behaves as an elector expects. For a refusal, Update returns a conflict error. After an unknown
// outcome, it sends the request again with the same ID. It releases only a lease that was granted to it.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := memory.New(nil).Authority()
		ctx := t.Context()
		lost := leasefault.Script(a, leasefault.First(1, lease.ActionAcquire, leasefault.FailAnswer))
		first, second := newLock(t, lost, "first"), newLock(t, a, "second")
		mine := resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 15}
		theirs := resourcelock.LeaderElectionRecord{HolderIdentity: "second", LeaseDurationSeconds: 15}

		if r, _, err := first.Get(ctx); err != nil || r.HolderIdentity != "" {
			t.Errorf("a lease that was never held is %+v, %v", r, err)
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

// heldByOther returns an authority at which another program holds the lease.
func heldByOther(t testing.TB, d time.Duration) lease.Authority {
	t.Helper()
	a := memory.New(nil).Authority()
	if _, err := a.Do(t.Context(), name, lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{1}, Owner: "other", Duration: d}); err != nil {
		t.Fatal(err)
	}
	return a
}

// An elector does not try to acquire the lease while another program holds an infinite lease.
func TestInfiniteLeaseBesideAnElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := heldByOther(t, lease.Infinite)
		var acquires atomic.Int32
		counted := leasefault.Script(a, leasefault.Always(lease.ActionAcquire, leasefault.Before(func() { acquires.Add(1) })))
		lock := newLock(t, counted, "elector")
		record, _, err := lock.Get(t.Context())
		if err != nil || record.LeaseDurationSeconds != math.MaxInt32 {
			t.Errorf("Get returns %+v, %v", record, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*duration)
		defer cancel()
		elect(ctx, t, lock, false, func() { t.Error("the elector leads") }, func() {})
		if n := acquires.Load(); n > 0 {
			t.Errorf("the elector sends %d acquires", n)
		}
	})
}

// Get rounds the duration up to whole seconds, so that the lease does not appear to end too early.
func TestRecordRoundsUp(t *testing.T) {
	for d, want := range map[time.Duration]int{time.Second: 1, time.Second + 1: 2, 2*time.Second - 1: 2} {
		a := heldByOther(t, d)
		if record, _, err := newLock(t, a, "elector").Get(t.Context()); err != nil || record.LeaseDurationSeconds != want {
			t.Errorf("Get returns %+v, %v for a lease of %v", record, err, d)
		}
	}
}

func TestNewLock(t *testing.T) {
	a := memory.New(nil).Authority()
	options := func(deadline, period time.Duration) *controllerruntime.LockOptions {
		return &controllerruntime.LockOptions{RenewDeadline: deadline, RetryPeriod: period}
	}
	expectField(t, second(controllerruntime.NewLock(nil, name, "x", nil)), "NewLock.a", lease.ErrOption)
	expectField(t, second(controllerruntime.NewLock(a, "", "x", nil)), "Name", lease.ErrName)
	expectField(t, second(controllerruntime.NewLock(a, name, "", nil)), "Owner", lease.ErrOwner)
	expectField(t, second(controllerruntime.NewLock(a, name, "x", options(0, -1))), "LockOptions.RetryPeriod", lease.ErrOption)
	for range 20 { // the order of the checks is the same in every call
		expectField(t, second(controllerruntime.NewLock(a, name, "x", options(-1, -1))), "LockOptions.RenewDeadline", lease.ErrOption)
	}
}

// expectField fails the test if err is not a *lease.FieldError with the given field and code.
func expectField(t testing.TB, err error, field string, code lease.Code) {
	t.Helper()
	if e := new(lease.FieldError); !errors.As(err, &e) || e.Field != field || e.Code != code {
		t.Errorf("the error is %v, and the wrong field is %s", err, field)
	}
}

func second[T any](_ T, err error) error { return err }

// hidingIDs is an authority that reports no ID to a read, as azlease does.
type hidingIDs struct{ lease.Authority }

func (h hidingIDs) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := h.Authority.Do(ctx, name, req)
	if req.Action == lease.ActionRead {
		res.Record.ID = lease.ID{}
	}
	return res, err
}

// An elector takes over from a crashed elector, even if a read does not report the ID of the lease.
func TestLockWithoutIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		led := make(chan string, 2)
		var cut atomic.Bool
		crashed := newLock(t, leasefault.Script(hidingIDs{store.Authority()}, leasefault.Always(leasefault.Any, leasefault.If(cut.Load, leasefault.FailRequest))), "first")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { elect(ctx, t, crashed, false, func() { led <- "first" }, func() {}) }()
		<-led
		cut.Store(true)
		cancel()
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Minute)
		second := newLock(t, hidingIDs{store.Authority()}, "second")
		go func() { elect(ctx, t, second, false, func() { led <- "second" }, func() {}) }()
		select {
		case <-led:
		case <-ctx.Done():
			t.Error("the second elector never leads")
		}
		cancel()
		synctest.Wait()
	})
}

// An elector whose timings are shorter than those of its Lock is refused before any request, because the
// lease would be granted to it and it could never lead. With its own timings it gets the lease.
func TestElectorsOwnTimings(t *testing.T) {
	record := resourcelock.LeaderElectionRecord{HolderIdentity: "first", LeaseDurationSeconds: 3}
	for _, c := range []struct {
		o    *controllerruntime.LockOptions
		want string
	}{
		{nil, "LeaseDuration of 3s"},
		{&controllerruntime.LockOptions{RenewDeadline: 2 * time.Second, RetryPeriod: time.Second}, "LeaseDuration of 3s"},
		{&controllerruntime.LockOptions{RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond}, ""},
	} {
		a := memory.New(nil).Authority()
		lock, err := controllerruntime.NewLock(a, name, "first", c.o)
		if err != nil {
			t.Fatal(err)
		}
		err = lock.Update(t.Context(), record)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "LockOptions")) {
			t.Errorf("with %+v: %v", c.o, err)
		}
		if state := inspect(t, a).State; (state == lease.Leased) != (c.want == "") {
			t.Errorf("with %+v, the lease is %v", c.o, state)
		}
	}
}
