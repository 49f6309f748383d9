package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

var (
	seed   = flag.Uint64("seed", 1, "of the first run; run n has seed+n")
	traces = flag.Int("traces", 40, "runs whose traces are replayed, a test")
)

// runs returns the number of runs that a test replays: the value of the flag -traces, or with
// -short a quarter of this value, but at least 4.
func runs() int {
	if testing.Short() {
		return max(4, *traces/4)
	}
	return *traces
}

// An account counts the traces and events that a test replays.
type account struct {
	sync.Mutex
	traces, events int
	beyond         int // traces that the model does not cover, because of an old protocol version, fractions of a unit, or too long a duration
}

// replay requires that the model can carry out the recorded events.
func (a *account) replay(t *testing.T, p *Replayer, r *Recorder, rate float64, margin time.Duration) {
	t.Helper()
	for _, name := range r.Names() {
		trace, err := r.Trace(name, rate, margin)
		if errors.Is(err, ErrOtherDialect) || errors.Is(err, ErrUnit) {
			a.Lock()
			a.beyond++
			a.Unlock()
			continue
		}
		if err == nil {
			err = p.Replay(t.Context(), trace)
		}
		if err != nil {
			t.Errorf("%q: %v", name, err)
		}
		a.Lock()
		a.traces++
		a.events += len(trace.Events)
		a.Unlock()
	}
}

func replayer(t *testing.T) *Replayer {
	t.Helper()
	p, err := NewReplayer(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// slow delays each load and each swap of s, so that requests of other clients come between a load
// and its swap.
func slow(s lease.Store, rng func() float64) lease.Store {
	return leasefault.ScriptStore(s, leasefault.Always(leasefault.LoadOrSwap, func(ctx context.Context, c *leasefault.Call) error {
		time.Sleep(time.Duration(rng() * float64(50*time.Millisecond)))
		return c.Send(ctx)
	}))
}

// locked returns a source of random numbers that several goroutines can use at once.
func locked(seed uint64) func() float64 {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 2))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return rng.Float64()
	}
}

// contend lets six clients send random requests to an authority over a slow store in memory. All
// clients use the same three lease IDs.
func contend(t *testing.T, seed uint64) *Recorder {
	r := new(Recorder)
	synctest.Test(t, func(t *testing.T) {
		a := r.Authority(NotAHolder, lease.NewAuthority(slow(r.Store(memory.New(nil)), locked(seed))))
		var all sync.WaitGroup
		for c := range 6 {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(10+c)))
				for range 20 {
					time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
					_, _ = a.Do(t.Context(), "contended", draw(rng))
				}
			})
		}
		all.Wait()
	})
	return r
}

func draw(rng *rand.Rand) lease.Request {
	id := func() lease.ID { return lease.ID{15: byte(1 + rng.IntN(3))} }
	switch rng.IntN(10) {
	case 0, 1, 2:
		d := time.Duration(1+rng.IntN(5)) * 100 * time.Millisecond
		if rng.IntN(10) == 0 {
			d = lease.Infinite
		}
		return lease.Request{Action: lease.ActionAcquire, Proposed: id(), Duration: d}
	case 3, 4:
		return lease.Request{Action: lease.ActionRenew, ID: id()}
	case 5:
		return lease.Request{Action: lease.ActionChange, ID: id(), Proposed: id()}
	case 6:
		return lease.Request{Action: lease.ActionRelease, ID: id()}
	case 7:
		if rng.IntN(2) == 0 {
			return lease.Request{Action: lease.ActionBreak}
		}
		return lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Duration(rng.IntN(4)) * 100 * time.Millisecond)}
	case 8:
		req := lease.Request{Action: lease.ActionWrite}
		if rng.IntN(2) == 0 {
			req.ID = id()
		}
		return req
	}
	return lease.Request{Action: lease.ActionRead}
}

// TestReplayAuthority replays concurrent requests to an authority from lease.NewAuthority.
//
// SPEC A2, A4, M16, S5.
func TestReplayAuthority(t *testing.T) {
	p, a := replayer(t), new(account)
	t.Run("all", func(t *testing.T) {
		for n := range uint64(runs()) {
			t.Run(fmt.Sprint(*seed+n), func(t *testing.T) {
				t.Parallel()
				a.replay(t, p, contend(t, *seed+n), 0, 0)
			})
		}
	})
	t.Logf("%d traces, %d events, from seed %d", a.traces, a.events, *seed)
}

// TestReplaySuite replays the requests of the conformance suite to an authority over memory. With
// -short, TestReplaySuite replays the requests of every fourth authority.
func TestReplaySuite(t *testing.T) {
	p, a := replayer(t), new(account)
	var mu sync.Mutex
	var recorders []*Recorder
	leasetest.TestAuthority(t, func(testing.TB) lease.Authority {
		mu.Lock()
		defer mu.Unlock()
		r := new(Recorder)
		recorders = append(recorders, r)
		return r.Authority(NotAHolder, lease.NewAuthority(r.Store(memory.New(nil))))
	}, &leasetest.Options{Bubble: true})
	for i, r := range recorders {
		if i%4 == 0 || !testing.Short() {
			a.replay(t, p, r, 0, 0)
		}
	}
	if a.beyond*10 > a.traces {
		t.Errorf("%d of the suite's traces are beyond the model", a.beyond)
	}
	t.Logf("%d traces, %d events; %d traces are beyond the model", a.traces, a.events, a.beyond)
}

// These are the options of the sessions whose runs are replayed.
const (
	term      = 30 * time.Second
	clockRate = 0.001
	margin    = time.Millisecond
)

// hold has three sessions contend for a lease over a network that loses, delays and repeats
// requests. Meanwhile, a third party breaks the lease. The sessions work, and then release or lose
// the lease.
func hold(t *testing.T, seed uint64, between func(lease.Authority) lease.Authority) *Recorder {
	const name = "held"
	r := new(Recorder)
	synctest.Test(t, func(t *testing.T) {
		random := locked(seed)
		servers := lease.NewAuthority(slow(r.Store(memory.New(nil)), random))
		network := func(ctx context.Context, c *leasefault.Call) error {
			time.Sleep(time.Duration(random() * float64(time.Second)))
			defer time.Sleep(time.Duration(random() * float64(time.Second)))
			switch x := random(); {
			case x < 0.05:
				return leasefault.LoseRequest(ctx, c)
			case x < 0.15:
				return leasefault.LoseAnswer(ctx, c)
			case x < 0.2:
				return leasefault.FailAnswer(ctx, c)
			case x < 0.25:
				return leasefault.Duplicate(ctx, c)
			case x < 0.3:
				return leasefault.Detach(t, leasefault.DelayRequest(time.Duration(random()*float64(2*term))))(ctx, c)
			}
			err := c.Send(ctx)
			if random() < 0.1 {
				return err // a refusal arrives without its record
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for i := range 3 {
			over := leasefault.Script(servers, leasefault.Always(leasefault.Any, network))
			if between != nil {
				over = between(over)
			}
			s, err := session.New(r.Authority(i, over), name, &session.Options{
				Owner: fmt.Sprint("holder ", i), Duration: term, MaxClockDrift: clockRate, Margin: margin,
				Logger: slog.New(slog.DiscardHandler),
			})
			if err != nil {
				t.Fatal(err)
			}
			r.Holder(i, name, s)
			all.Go(func() {
				for ctx.Err() == nil {
					time.Sleep(time.Duration(random() * float64(10*time.Second)))
					if ok, _ := s.Acquire(ctx); !ok {
						continue
					}
					for end := time.Now().Add(time.Duration(random() * float64(2*time.Minute))); s.CheckAlive() && time.Now().Before(end); {
						time.Sleep(time.Second + time.Duration(random()*float64(time.Second)))
						r.Sample(name)
					}
					_ = s.Release(ctx)
					r.Released(i, name)
				}
				_ = s.Close(context.Background())
				r.Released(i, name)
			})
		}
		all.Go(func() { // the grace period is a full term, so no break ends the lease early
			third := r.Authority(NotAHolder, servers)
			for ctx.Err() == nil {
				time.Sleep(time.Duration(random() * float64(3*time.Minute)))
				_, _ = lease.Break(ctx, third, name, lease.Grace(term))
			}
		})
		all.Wait()
	})
	return r
}

// TestReplaySessions replays runs of three sessions that contend for a lease.
//
// SPEC A5, H6, H9, H13, H15, H19.
func TestReplaySessions(t *testing.T) {
	p, a := replayer(t), new(account)
	t.Run("all", func(t *testing.T) {
		for n := range uint64(runs()) {
			t.Run(fmt.Sprint(*seed+n), func(t *testing.T) {
				t.Parallel()
				a.replay(t, p, hold(t, *seed+n, nil), clockRate, margin)
			})
		}
	})
	t.Logf("%d traces, %d events, from seed %d", a.traces, a.events, *seed)
}
