package kubelease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/lease/session"
)

// The times of the electors in the tests. The duration of a lease of client-go is a whole number of seconds.
const (
	electorDuration = 3 * time.Second
	electorDeadline = 2 * time.Second
	electorRetry    = 200 * time.Millisecond
)

// A way carries the requests of a client to the server. A test can cut a way.
type way struct{ cut atomic.Bool }

var errCut = errors.New("the way to the server is cut")

func (w *way) wrap(next http.RoundTripper) http.RoundTripper {
	return trip(func(q *http.Request) (*http.Response, error) {
		if w.cut.Load() {
			return nil, errCut
		}
		res, err := next.RoundTrip(q)
		if w.cut.Load() {
			return nil, errCut
		}
		return res, err
	})
}

// A contender is a Session or an elector of client-go. It contends until it has led once, or is stopped.
type contender struct {
	way
	started chan struct{} // closed when it leads
	ended   chan struct{} // closed when it has stopped
	leads   func() bool   // whether it believes that it leads
	stop    func()        // stops it; a Session, and an elector with ReleaseOnCancel, then release the lease
	crash   func()        // keeps it from sending anything
}

// startSession starts a Session that renews as often as by default, or ten times in its duration if it is quick.
func startSession(t testing.TB, address, name, owner string, duration time.Duration, quick bool, wrap ...wrapper) *contender {
	t.Helper()
	c := &contender{started: make(chan struct{}), ended: make(chan struct{})}
	o := &session.Options{Owner: owner, Duration: duration, Logger: slog.New(slog.DiscardHandler)}
	if quick {
		o.RenewInterval, o.RequestTimeout = duration/10, duration/8
	}
	s, err := store(t, client(t, address, append(wrap, c.wrap)...), nil).Lease(name, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(c.ended)
		if _, err := session.AcquireWait(ctx, s, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)}); err == nil {
			close(c.started)
		}
	}()
	c.leads = s.CheckAlive
	c.stop = func() {
		cancel()
		<-c.ended
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if c.cut.Load() {
			cancel() // no request would be answered
		}
		_ = s.Close(closing)
	}
	c.crash = func() { c.cut.Store(true) } // for other processes, a crash looks like a partition
	t.Cleanup(c.stop)
	return c
}

// electorTimes are LeaseDuration, RenewDeadline and RetryPeriod of an elector.
type electorTimes struct{ duration, deadline, retry time.Duration }

var quickTimes = electorTimes{electorDuration, electorDeadline, electorRetry}

func startElector(t testing.TB, address, name, identity string, times electorTimes, releaseOnCancel bool, wrap ...wrapper) *contender {
	t.Helper()
	const contends, leading, stopped = 0, 1, 2
	var state atomic.Int32
	c := &contender{started: make(chan struct{}), ended: make(chan struct{})}
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client(t, address, append(wrap, c.wrap)...),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: times.duration, RenewDeadline: times.deadline, RetryPeriod: times.retry, ReleaseOnCancel: releaseOnCancel, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				if state.CompareAndSwap(contends, leading) {
					close(c.started)
				}
			},
			OnStoppedLeading: func() { state.Store(stopped) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	go func() {
		defer close(c.ended)
		e.Run(ctx)
	}()
	c.leads = func() bool { return state.Load() == leading }
	c.stop = func() {
		state.Store(stopped)
		cancel()
		<-c.ended
	}
	c.crash = func() { c.cut.Store(true); c.stop() }
	t.Cleanup(c.stop)
	return c
}

// The kinds of contenders. The parameter quick is that of startSession.
const (
	ours   = "ours"
	theirs = "elector"
)

func start(t testing.TB, kind, name, who string, quick, releaseOnCancel bool) *contender {
	t.Helper()
	if kind == ours {
		return startSession(t, shared.Address, name, who, electorDuration, quick)
	}
	times := quickTimes
	if !quick {
		times.retry = electorDuration * 2 / 15 // the ratio of the defaults
	}
	return startElector(t, shared.Address, name, who, times, releaseOnCancel)
}

// end ends the leadership of a contender by a "release", a "crash" or a "partition".
func (c *contender) end(how string) {
	switch how {
	case "release":
		c.stop()
	case "crash":
		c.crash()
	default:
		c.cut.Store(true)
	}
}

const soon = 30 * time.Second // the time limit for events that happen at once if the machine is not busy

func await(t testing.TB, what string, c <-chan struct{}) time.Time {
	t.Helper()
	select {
	case <-c:
	case <-time.After(soon):
		t.Fatalf("%s: not within %v", what, soon)
	}
	return time.Now()
}

// takeOver returns the time until the second contender leads, after the first one has led for two durations.
// The two never lead at the same time. A lease that was not released is not taken over too early.
func takeOver(t testing.TB, first, second, name, end string, quick bool) time.Duration {
	t.Helper()
	one := start(t, first, name, "first", quick, end == "release")
	await(t, "the first leads", one.started)
	two := start(t, second, name, "second", quick, true)
	time.Sleep(2 * electorDuration) // a real engine
	if two.leads() || !one.leads() {
		t.Errorf("after two durations, the first leads: %v, and the second: %v", one.leads(), two.leads())
	}
	ended := time.Now()
	one.end(end)
	took := await(t, "the second leads", two.started).Sub(ended)
	if one.leads() {
		t.Error("two lead")
	}
	if end != "release" && took < electorDuration/2 {
		t.Errorf("a lease of %v was taken over %v after the end of a holder that renews often", electorDuration, took)
	}
	one.stop()
	two.stop()
	return took
}

// A Session and an elector take over from each other, at once after a release, and when the lease has ended after a crash.
func TestEachSeesTheOtherEnd(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][2]string{{ours, theirs}, {theirs, ours}} {
		for _, end := range []string{"release", "crash"} {
			t.Run(kinds[0]+" "+end, func(t *testing.T) {
				t.Parallel()
				t.Logf("%s leads %v after the %s", kinds[1], takeOver(t, kinds[0], kinds[1], objectOf(t), end, true), end)
			})
		}
	}
}

// A contest is kept between holders of both kinds. A contender that becomes the holder checks that no
// other still believes that it holds the lease.
type contest struct {
	mu       sync.Mutex
	holders  map[string]func() bool
	overlaps []string
	wins     map[string]int // by kind
	cancel   context.CancelFunc
}

// proves reports whether each kind has held the lease twice.
func (c *contest) proves() bool { return c.wins[ours] > 1 && c.wins[theirs] > 1 }

func (c *contest) begin(kind, who string, believes func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, believes := range c.holders {
		if other != who && believes() {
			c.overlaps = append(c.overlaps, fmt.Sprintf("%s begins while %s believes", who, other))
		}
	}
	c.holders[who] = believes
	if c.wins[kind]++; testing.Short() && c.proves() {
		c.cancel()
	}
}

// contend lets contenders of a kind contend one after the other until the context is done.
func (c *contest) contend(ctx context.Context, t *testing.T, name, kind, who string, r *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		one := start(t, kind, name, fmt.Sprint(who, n), true, r.IntN(2) == 0)
		select {
		case <-one.started:
			c.begin(kind, who, one.leads)
			time.Sleep(time.Duration(r.Int64N(int64(electorDuration / 3)))) // a real engine
			one.end([]string{"release", "release", "crash", "partition"}[r.IntN(4)])
			for one.leads() {
				time.Sleep(electorDuration / 100)
			}
		case <-ctx.Done():
		}
		one.stop()
	}
}

// Holders of this library and plain electors contend for one object, and are started, stopped, cut off
// and killed in random order. There is never more than one leader. The log shows how often each kind
// became the leader. With -short, the test ends when each kind has won twice.
func TestContest(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := &contest{holders: map[string]func() bool{}, wins: map[string]int{}, cancel: cancel}
	var all sync.WaitGroup
	for i, kind := range []string{ours, ours, theirs, theirs} {
		all.Go(func() {
			c.contend(ctx, t, objectOf(t), kind, fmt.Sprint(kind, " ", i), rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
	all.Wait()
	t.Logf("seed %d: held by %v", seed, c.wins)
	for _, overlap := range c.overlaps {
		t.Error(overlap)
	}
	if !c.proves() {
		t.Error("that proves nothing")
	}
}
