package kubelease_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/session"
)

// A tally counts writes, reads and watches.
type tally struct{ writes, reads, watches atomic.Int64 }

func (c *tally) wrap(next http.RoundTripper) http.RoundTripper {
	return trip(func(q *http.Request) (*http.Response, error) {
		switch {
		case q.Method != http.MethodGet:
			c.writes.Add(1)
		case q.URL.Query().Has("watch"):
			c.watches.Add(1)
		default:
			c.reads.Add(1)
		}
		return next.RoundTrip(q)
	})
}

// perMinute returns the counts per minute since an earlier tally.
func (c *tally) perMinute(since *tally, d time.Duration) string {
	rate := func(n, before *atomic.Int64) float64 {
		return float64(n.Load()-before.Load()) * float64(time.Minute) / float64(d)
	}
	return fmt.Sprintf("%5.1f writes, %5.1f reads", rate(&c.writes, &since.writes), rate(&c.reads, &since.reads))
}

func (c *tally) copy() *tally {
	n := new(tally)
	n.writes.Store(c.writes.Load())
	n.reads.Store(c.reads.Load())
	return n
}

// The test counts the requests for a held lease, of the holder and of each of two waiters. The leases of both
// libraries last 15 s, the default of client-go. client-go renews every 2 s, and this library every 5 s.
func TestCompareRequests(t *testing.T) {
	t.Parallel()
	d := 2 * time.Minute
	if testing.Short() {
		d = 12 * time.Second
	}
	const warmUp = 5 * time.Second
	var ours, theirs [3]tally
	for i := range ours {
		s, err := session.New(store(t, client(t, shared.Address, ours[i].wrap), nil).Authority(), objectOf(t)+".ours", &session.Options{Duration: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		held := acquireWait(t, s)
		e := startElectorAt(t, shared.Address, objectOf(t)+".theirs", fmt.Sprint("elector-", i), electorTimes{15 * time.Second, 10 * time.Second, 2 * time.Second}, false, theirs[i].wrap)
		if i == 0 {
			await(t, "we hold", held)
			await(t, "the elector leads", e.started)
		}
	}
	time.Sleep(warmUp) // a real engine
	var before [2][3]*tally
	for i := range ours {
		before[0][i], before[1][i] = ours[i].copy(), theirs[i].copy()
	}
	time.Sleep(d)
	for i, who := range []string{"holder", "waits", "waits"} {
		t.Logf("%s, per minute: ours %s; client-go %s", who, ours[i].perMinute(before[0][i], d), theirs[i].perMinute(before[1][i], d))
	}
	if w, z := ours[0].writes.Load(), theirs[0].writes.Load(); w >= z {
		t.Errorf("a holder of ours has written %d times, and an elector %d times", w, z)
	}
	if r := ours[1].reads.Load() + ours[2].reads.Load(); r >= theirs[1].reads.Load()+theirs[2].reads.Load() {
		t.Errorf("contenders of ours have read %d times", r)
	}
}

// The test measures the time until another holder has the lease, after a release, a crash and a
// partition. The leases last 3 s, and are renewed at the default intervals.
func TestCompareTakeOver(t *testing.T) {
	t.Parallel()
	tries := 9
	if testing.Short() {
		tries = 1
	}
	for _, end := range []string{"release", "crash", "partition"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			var ours, theirs []time.Duration
			for i := range tries {
				ours = append(ours, ourTakeOver(t, fmt.Sprint(objectOf(t), ".ours", i), end))
				theirs = append(theirs, theirTakeOver(t, fmt.Sprint(objectOf(t), ".theirs", i), end))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			t.Logf("%s: ours %v (%v to %v), client-go %v (%v to %v)", end, ours[tries/2].Round(time.Millisecond), ours[0].Round(time.Millisecond), ours[tries-1].Round(time.Millisecond),
				theirs[tries/2].Round(time.Millisecond), theirs[0].Round(time.Millisecond), theirs[tries-1].Round(time.Millisecond))
		})
	}
}

func ourTakeOver(t *testing.T, name, end string) time.Duration {
	var w way
	open := func(wrap ...func(http.RoundTripper) http.RoundTripper) *session.Session {
		s, err := session.New(store(t, client(t, shared.Address, wrap...), nil).Authority(), name, &session.Options{Duration: electorDuration, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := open(w.wrap), open()
	mustAcquire(t, first)
	held := acquireWait(t, second)
	time.Sleep(electorDuration) // a real engine
	began := time.Now()
	if end == "release" {
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
	} else { // for other processes, a crash looks like a partition
		w.cut.Store(true)
	}
	took := await(t, "the second holds", held).Sub(began)
	for _, s := range []*session.Session{first, second} {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = s.Close(ctx)
		cancel()
	}
	return took
}

func theirTakeOver(t *testing.T, name, end string) time.Duration {
	times := electorTimes{electorDuration, electorDeadline, electorDuration * 2 / 15}
	first := startElectorAt(t, shared.Address, name, "first", times, end == "release")
	await(t, "the first leads", first.started)
	second := startElectorAt(t, shared.Address, name, "second", times, false)
	time.Sleep(electorDuration) // a real engine
	began := time.Now()
	switch end {
	case "release":
		first.stop()
	case "crash":
		first.crash()
	default:
		first.cut.Store(true)
	}
	took := await(t, "the second leads", second.started).Sub(began)
	first.stop()
	second.stop()
	return took
}

// One process holds a thousand leases over one client, and a thousand electors run too. No lease is
// lost, and the log shows the cost of each. The test runs alone, because it measures the memory and the
// goroutines of the whole process.
func TestThousandLeases(t *testing.T) {
	n, hold := 1000, 20*time.Second
	if testing.Short() {
		n, hold = 100, 2*time.Second
	}
	heap, goroutines := used()
	enginetest.Load{Leases: n, Duration: 15 * time.Second, Hold: hold, Held: func() {
		heldHeap, heldGoroutines := used()
		t.Logf("ours: %d bytes and %.1f goroutines for each lease", (heldHeap-heap)/int64(n), float64(heldGoroutines-goroutines)/float64(n))
	}}.Run(t, newStore(t))

	heap, goroutines = used()
	c := client(t, shared.Address)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	var leading, all sync.WaitGroup
	began := time.Now()
	for i := range n {
		leading.Add(1)
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(objectOf(t), ".theirs.", i)}, Client: c, LockConfig: resourcelock.ResourceLockConfig{Identity: "elector"}},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leading.Done() }, OnStoppedLeading: func() {}},
		})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { e.Run(ctx) })
	}
	leading.Wait()
	acquired := time.Since(began)
	time.Sleep(hold)
	heldHeap, heldGoroutines := used()
	t.Logf("client-go: %d leases, acquired in %v; %d bytes and %.1f goroutines each", n, acquired.Round(time.Millisecond), (heldHeap-heap)/int64(n), float64(heldGoroutines-goroutines)/float64(n))
	cancel()
	all.Wait()
}

// used returns the size of the heap of the process and the number of goroutines.
func used() (heap int64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), runtime.NumGoroutine()
}
