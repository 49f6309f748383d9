package kubelease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// newSession makes a holder that is closed at the end of the test.
func newSession(t testing.TB, a lease.Authority, name, owner string, takeOver bool) *session.Session {
	t.Helper()
	s, err := session.New(a, name, &session.Options{Owner: owner, TakeOver: takeOver, Duration: electorDuration, RenewInterval: electorDuration / 10,
		RequestTimeout: electorDuration / 8, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx) // its connection to the server can be cut
	})
	return s
}

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

// An elector is an elector of client-go.
type elector struct {
	way
	state          atomic.Int32
	started, ended chan struct{}
	cancel         context.CancelFunc
}

// An elector is in one of the following states.
const (
	contends int32 = iota
	leading
	stopped
)

func (e *elector) leads() bool { return e.state.Load() == leading }

// electorTimes are LeaseDuration, RenewDeadline and RetryPeriod of an elector.
type electorTimes struct{ duration, deadline, retry time.Duration }

// startElector starts an elector, which contends until it has led once, or is stopped.
func startElector(t testing.TB, name, identity string, releaseOnCancel bool, wrap ...func(http.RoundTripper) http.RoundTripper) *elector {
	t.Helper()
	return startElectorAt(t, shared.Address, name, identity, electorTimes{electorDuration, electorDeadline, electorRetry}, releaseOnCancel, wrap...)
}

func startElectorAt(t testing.TB, address, name, identity string, times electorTimes, releaseOnCancel bool, wrap ...func(http.RoundTripper) http.RoundTripper) *elector {
	t.Helper()
	e := &elector{started: make(chan struct{}), ended: make(chan struct{})}
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client(t, address, append(wrap, e.wrap)...),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity}}
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: times.duration, RenewDeadline: times.deadline, RetryPeriod: times.retry, ReleaseOnCancel: releaseOnCancel, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				if e.state.CompareAndSwap(contends, leading) {
					close(e.started)
				}
			},
			OnStoppedLeading: func() { e.state.Store(stopped) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	e.cancel = cancel
	go func() {
		defer close(e.ended)
		le.Run(ctx)
	}()
	t.Cleanup(e.stop)
	return e
}

// stop ends the elector. An elector with ReleaseOnCancel then releases the lease.
func (e *elector) stop() {
	e.state.Store(stopped)
	e.cancel()
	<-e.ended
}

// crash ends the elector without a release.
func (e *elector) crash() {
	e.cut.Store(true)
	e.stop()
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

// After a Session releases the lease, an elector leads at once. After a Session dies, an elector does not
// lead before the Session has stopped believing that it holds the lease. After an elector releases the lease,
// a Session holds it at once. After an elector dies, a Session does not hold the lease before it has ended.
func TestEachSeesTheOtherEnd(t *testing.T) {
	t.Parallel()
	t.Run("our release", func(t *testing.T) {
		t.Parallel()
		name := objectOf(t)
		s := newSession(t, newStore(t).Authority(), name, "ours", false)
		mustAcquire(t, s)
		e := startElector(t, name, "elector", true)
		time.Sleep(2 * electorDuration) // the elector must not lead while the Session renews
		if e.leads() || !s.CheckAlive() {
			t.Fatalf("after two durations the elector leads: %v, and we hold: %v", e.leads(), s.CheckAlive())
		}
		released := time.Now()
		eventually(t, "our release", s.Release)
		t.Logf("it leads %v after our release", await(t, "the elector leads", e.started).Sub(released))
	})
	t.Run("our death", func(t *testing.T) {
		t.Parallel()
		name := objectOf(t)
		var w way
		s := newSession(t, store(t, client(t, shared.Address, w.wrap), nil).Authority(), name, "ours", false)
		mustAcquire(t, s)
		e := startElector(t, name, "elector", true)
		time.Sleep(electorDuration)
		w.cut.Store(true)
		died := time.Now()
		for !e.leads() && time.Since(died) < soon {
			time.Sleep(time.Millisecond)
		}
		if s.CheckAlive() {
			t.Error("two believe")
		}
		t.Logf("it leads %v after our death", time.Since(died))
		if took := time.Since(died); took < electorDuration/2 || took >= soon {
			t.Errorf("it leads %v after the death of a holder that renews ten times in %v", took, electorDuration)
		}
	})
	t.Run("its release", func(t *testing.T) {
		t.Parallel()
		name := objectOf(t)
		e := startElector(t, name, "elector", true)
		await(t, "the elector leads", e.started)
		s := newSession(t, newStore(t).Authority(), name, "ours", false)
		held := acquireWait(t, s)
		time.Sleep(2 * electorDuration)
		select {
		case <-held:
			t.Fatal("we hold while the elector leads")
		default:
		}
		e.stop()
		stopped := time.Now()
		t.Logf("we hold %v after its release", await(t, "we hold", held).Sub(stopped))
	})
	t.Run("its death", func(t *testing.T) {
		t.Parallel()
		name := objectOf(t)
		e := startElector(t, name, "elector", true)
		await(t, "the elector leads", e.started)
		s := newSession(t, newStore(t).Authority(), name, "ours", false)
		held := acquireWait(t, s)
		time.Sleep(electorDuration)
		e.crash()
		died := time.Now()
		took := await(t, "we hold", held).Sub(died)
		t.Logf("we hold %v after its death", took)
		if took < electorDuration-2*electorRetry-time.Second {
			t.Errorf("a lease of %v was taken over %v after its last renewal", electorDuration, took)
		}
	})
}

func mustAcquire(t testing.TB, s *session.Session) {
	t.Helper()
	if _, err := session.AcquireWait(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
}

// acquireWait returns a channel that is closed as soon as the session holds the lease.
func acquireWait(t testing.TB, s *session.Session) <-chan struct{} {
	held := make(chan struct{})
	go func() {
		if _, err := session.AcquireWait(t.Context(), s, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)}); err == nil {
			close(held)
		}
	}()
	return held
}

// Electors compare whole seconds. If a holder renews twice in one second, an elector does not replace
// it before the lease of the second renewal has ended, as it would with the plain time of the renewal
// as renewTime.
func TestElectorsCompareWholeSeconds(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		name := fmt.Sprint(objectOf(t), i)
		a := newStore(t).Authority()
		do(t, a, name, acquire(idA, electorDuration), 0)
		e := startElector(t, name, "elector", false)
		second := time.Now().Truncate(time.Second).Add(2 * time.Second)
		time.Sleep(time.Until(second.Add(20 * time.Millisecond))) // a real engine
		do(t, a, name, renew(idA), 0)
		time.Sleep(time.Until(second.Add(850 * time.Millisecond)))
		sent := time.Now()
		until := sent.Add(do(t, a, name, renew(idA), 0).MinRemaining)
		if led := await(t, "the elector leads", e.started); led.Before(until) {
			t.Errorf("it leads %v before the lease is over", until.Sub(led))
		}
		e.stop()
	}
}

// A contest is kept between holders of both kinds. A contender that becomes the holder checks that no
// other still believes that it holds the lease.
type contest struct {
	mu       sync.Mutex
	holders  map[string]func() bool
	overlaps []string
	wins     map[string]int
	ends     map[string]int
}

func (c *contest) begin(who string, believes func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, believes := range c.holders {
		if other != who && believes() {
			c.overlaps = append(c.overlaps, fmt.Sprintf("%s begins while %s believes", who, other))
		}
	}
	c.holders[who] = believes
	kind, _, _ := strings.Cut(who, " ")
	c.wins[kind]++
}

func (c *contest) end(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[how]++
}

// contend lets a session contend until the context is done.
func (c *contest) contend(ctx context.Context, t *testing.T, name, who string, r *rand.Rand) {
	for ctx.Err() == nil {
		var w way
		s, err := session.New(store(t, client(t, shared.Address, w.wrap), nil).Authority(), name, &session.Options{Owner: who, Duration: electorDuration,
			RenewInterval: electorDuration / 10, RequestTimeout: electorDuration / 8, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := session.AcquireWait(ctx, s, &session.RunOptions{Logger: slog.New(slog.DiscardHandler)}); err == nil {
			c.begin(who, s.CheckAlive)
			time.Sleep(time.Duration(r.Int64N(int64(electorDuration / 3)))) // a real engine
			if r.IntN(2) == 0 {
				_ = s.Release(ctx)
				c.end("our release")
			} else {
				w.cut.Store(true)
				for s.CheckAlive() {
					time.Sleep(electorDuration / 100)
				}
				c.end("our partition")
			}
		}
		closing, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = s.Close(closing)
		cancel()
	}
}

// elect lets electors contend one after the other until the context is done.
func (c *contest) elect(ctx context.Context, t *testing.T, name, who string, r *rand.Rand) {
	for n := 0; ctx.Err() == nil; n++ {
		e := startElector(t, name, fmt.Sprint(who, n), r.IntN(2) == 0)
		select {
		case <-e.started:
			c.begin(who, e.leads)
			time.Sleep(time.Duration(r.Int64N(int64(electorDuration / 3)))) // a real engine
			switch r.IntN(3) {
			case 0:
				e.crash()
				c.end("crash of an elector")
			case 1:
				e.cut.Store(true)
				<-e.ended
				c.end("partition of an elector")
			default:
				e.stop()
				c.end("end of an elector")
			}
		case <-ctx.Done():
			e.stop()
		}
	}
}

// Holders of this library and plain electors contend for one object, and are started, stopped, cut off
// and killed in random order. There is never more than one leader. The log shows how often each kind
// became the leader.
func TestContest(t *testing.T) {
	t.Parallel()
	d := 2 * time.Minute
	if testing.Short() {
		d = 15 * time.Second
	}
	seed := rand.Uint64()
	c := &contest{holders: map[string]func() bool{}, wins: map[string]int{}, ends: map[string]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			c.contend(ctx, t, objectOf(t), fmt.Sprint("ours ", i), rand.New(rand.NewPCG(seed, uint64(i))))
		})
		all.Go(func() {
			c.elect(ctx, t, objectOf(t), fmt.Sprint("elector ", i), rand.New(rand.NewPCG(seed, uint64(10+i))))
		})
	}
	all.Wait()
	t.Logf("seed %d: held by %v, ended by %v", seed, c.wins, c.ends)
	for _, overlap := range c.overlaps {
		t.Error(overlap)
	}
	if c.wins["ours"] < 2 || c.wins["elector"] < 2 {
		t.Error("that proves nothing")
	}
}
