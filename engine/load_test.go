package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A model of a server carries out one request after the other, also those that nobody waits for any more.
type model struct {
	mu       sync.Mutex
	each     time.Duration // for one request
	free     time.Time     // when it has done all that it has got
	count    int
	from, to time.Time // when all requests are lost
}

// do sends a request, and returns nil if the server answers before ctx ends.
func (m *model) do(ctx context.Context) error {
	m.mu.Lock()
	now := time.Now()
	m.count++
	if !now.Before(m.from) && now.Before(m.to) {
		m.mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	}
	if m.free.Before(now) {
		m.free = now
	}
	m.free = m.free.Add(m.each)
	answer := time.NewTimer(m.free.Sub(now))
	m.mu.Unlock()
	defer answer.Stop()
	select {
	case <-answer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// set changes the speed of the server after a pause.
func (m *model) set(each, pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each = each
	if now := time.Now(); m.free.Before(now) {
		m.free = now
	}
	m.free = m.free.Add(pause)
}

// loseAll makes the network lose all requests for some time.
func (m *model) loseAll(lasts time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.from, m.to = time.Now(), time.Now().Add(lasts)
}

// sent returns how many requests were sent since the last call.
func (m *model) sent() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.count
	m.count = 0
	return n
}

// A served store sends each request through a Gate to the model of a server.
type served struct {
	*memory.Store
	g        *engine.Gate
	server   *model
	renewals *engine.Batcher[change, changed] // nil: each renewal is a request of its own
}

type change struct {
	name string
	old  lease.Snapshot
	next lease.Record
}

type changed struct {
	lease.Snapshot
	err error
}

func newServed(gate int, each time.Duration) *served {
	return &served{Store: memory.New(nil), g: engine.NewGate(gate), server: &model{each: each}}
}

// batch makes the store send renewals together.
func (s *served) batch(few, most int) {
	s.renewals = &engine.Batcher[change, changed]{Kind: engine.Request{Urgent: true, Renewals: 1}, Gate: s.g, Few: few, Most: most,
		Send: func(ctx context.Context, pass engine.Pass, all []change) (answers []changed, err error) {
			defer func() { pass.Leave(err == nil) }()
			if err := s.server.do(ctx); err != nil {
				return nil, err
			}
			for _, c := range all {
				snap, err := renewNow(ctx, s.Store, c.name, c.old, c.next)
				answers = append(answers, changed{snap, err})
			}
			return answers, nil
		}}
}

func (s *served) Load(ctx context.Context, name string) (snap lease.Snapshot, err error) {
	err = s.exchange(ctx, engine.Request{}, func() error {
		snap, err = s.Store.Load(ctx, name)
		return err
	})
	return snap, err
}

func (s *served) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	err = s.g.Swap(name, old.Record, next, func(r engine.Request) error {
		return s.exchange(ctx, r, func() error {
			snap, err = s.Store.Swap(ctx, name, old, next)
			return err
		})
	})
	return snap, err
}

// renew is a Renewal.
func (s *served) renew(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	err = s.g.Swap(name, old.Record, next, func(r engine.Request) error {
		if s.renewals != nil {
			answer, err := s.renewals.Do(ctx, name, change{name, old, next})
			snap = answer.Snapshot
			return errors.Join(err, answer.err)
		}
		return s.exchange(ctx, r, func() error {
			snap, err = renewNow(ctx, s.Store, name, old, next)
			return err
		})
	})
	return snap, err
}

// exchange sends a request, and carries it out if the server answers.
func (s *served) exchange(ctx context.Context, r engine.Request, f func() error) error {
	return s.g.Do(ctx, r, func() error {
		if err := s.server.do(ctx); err != nil {
			return err
		}
		return f()
	})
}

// A crowd is a process with many sessions over a served store.
type crowd struct {
	*served
	duration time.Duration

	held, stopped, lost, failed, latest atomic.Int64 // stopped counts the stop windows, and latest is the longest time of a renewal
	refused                             atomic.Pointer[engine.FullError]
}

// hold acquires the named leases, with the given number of tries at a time, until ctx ends, and keeps what it gets.
func (c *crowd) hold(t *testing.T, ctx context.Context, all *sync.WaitGroup, names, workers int) {
	a := engine.NewAuthority(c.served, c.renew, nil)
	o := &session.Options{Duration: c.duration, Logger: slog.New(slog.DiscardHandler), Trace: &session.Trace{
		Acquire: func(i session.AcquireInfo) {
			if full := (*engine.FullError)(nil); errors.As(i.Err, &full) && !errors.Is(i.Err, context.Canceled) {
				c.refused.Store(full)
			}
		},
		Renew: func(i session.RenewInfo) {
			if c.latest.Store(max(c.latest.Load(), int64(i.Took))); i.Err != nil {
				c.failed.Add(1)
			}
		},
		Stopping: func(*lease.LostError) { c.stopped.Add(1) },
		Ended: func(i session.EndInfo) {
			if !errors.Is(i.Reason, lease.ErrReleased) {
				c.lost.Add(1)
			}
		},
	}}
	queue := make(chan *session.Session, names)
	for i := range names {
		s, err := session.New(a, fmt.Sprint(i), o)
		if err != nil {
			t.Fatal(err)
		}
		queue <- s
		all.Go(func() {
			<-ctx.Done()
			_ = s.Close(context.WithoutCancel(ctx))
		})
	}
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				select {
				case s := <-queue:
					if ok, _ := s.Acquire(ctx); ok {
						c.held.Add(1)
						continue
					}
					queue <- s
					time.Sleep(c.duration / 12)
				case <-ctx.Done():
				}
			}
		})
	}
}

// crowded calls f in a bubble while a crowd holds as many of the named leases as it can get.
func crowded(t *testing.T, duration time.Duration, names int, open func() *served, f func(t *testing.T, c *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{served: open(), duration: duration}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		c.hold(t, ctx, &all, names, 64)
		f(t, c)
		cancel()
		all.Wait()
		if c.renewals != nil {
			c.renewals.Close()
		}
	})
}

// The server of the tests below does 300 renewals a second, which is enough for 1,500 leases of 15 s.
const (
	perRequest = time.Second / 300
	fifteen    = 15 * time.Second
	fits       = 1500
)

func openFor(gate int) func() *served { return func() *served { return newServed(gate, perRequest) } }

// Asked for three times what a server can carry, a store holds at least four fifths of that, loses none, and
// says both figures when it refuses one.
func TestGateUnderThreeTimesTheLoad(t *testing.T) {
	crowded(t, fifteen, 3*fits, openFor(32), func(t *testing.T, c *crowd) {
		time.Sleep(2 * time.Minute)
		held, lost, refused := c.held.Load(), c.lost.Load(), c.refused.Load()
		t.Logf("%d of %d that fit are held, %d are lost", held, fits, lost)
		if held < fits*8/10 || held > fits*9/10 || lost > 0 {
			t.Errorf("%d of %d that fit are held, and %d are lost", held, fits, lost)
		}
		if refused == nil {
			t.Fatal("none was refused")
		}
		if refused.Does < 270 || refused.Does > 320 || refused.Asked < 0.7*300 || refused.Asked > 320 {
			t.Errorf("refused with %+v", refused)
		}
		if text := refused.Error(); !strings.Contains(text, fmt.Sprintf("%.0f", refused.Asked)) || !strings.Contains(text, fmt.Sprintf("%.0f", refused.Does)) {
			t.Errorf("%q does not say both figures", text)
		}
	})
}

// A pause of the server costs no lease whose duration is longer than three times the pause, and after it the
// server does not get more requests a second than it can do. A server that is slower for a while keeps its
// leases, too, if it still carries them, and later holds as many as before.
func TestGateWhenTheServerSlowsDown(t *testing.T) {
	crowded(t, fifteen, 3*fits, openFor(32), func(t *testing.T, c *crowd) {
		time.Sleep(time.Minute)
		for _, pause := range []time.Duration{2 * time.Second, 4 * time.Second} {
			c.server.set(perRequest, pause)
			time.Sleep(pause)
			c.server.sent()
			for range 10 {
				time.Sleep(time.Second)
				if n := c.server.sent(); n > 300+32 {
					t.Errorf("%d requests in a second after a pause of %v", n, pause)
				}
			}
			time.Sleep(30 * time.Second)
			if lost := c.lost.Load(); lost > 0 {
				t.Errorf("%d of %d are lost after a pause of %v", lost, c.held.Load(), pause)
			}
		}
	})
	crowded(t, fifteen, 3*fits, openFor(32), func(t *testing.T, c *crowd) { // half as fast at the beginning
		c.server.set(2*perRequest, 0)
		time.Sleep(time.Minute)
		before, lost := c.held.Load(), c.lost.Load()
		if before > fits*6/10 || lost > 0 {
			t.Errorf("%d are held and %d lost at a server for %d", before, lost, fits/2)
		}
		c.server.set(perRequest, 0)
		time.Sleep(3 * time.Minute)
		held, lost := c.held.Load(), c.lost.Load()
		t.Logf("%d are held while the server is slow, and %d after that", before, held)
		if held < fits*8/10 || lost > 0 {
			t.Errorf("%d are held and %d lost at a server for %d that was slow once", held, lost, fits)
		}
	})
}

// A server that is suddenly too slow for all renewals still answers other requests, and no lease is lost for them.
func TestGateAnswersReadsWhileTheServerIsTooSlow(t *testing.T) {
	crowded(t, fifteen, 3*fits, openFor(32), func(t *testing.T, c *crowd) {
		time.Sleep(time.Minute)
		c.server.set(time.Second/200, 0) // the renewals need about 250
		failed := 0
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), fifteen/6)
			if _, err := c.Load(ctx, "read"); err != nil {
				failed++
			}
			cancel()
			time.Sleep(time.Second)
		}
		if lost := c.lost.Load(); failed > 0 || lost > 0 {
			t.Errorf("%d of 30 reads failed, and %d of %d leases are lost", failed, lost, c.held.Load())
		}
	})
}

// An outage in which no request is answered stops no leader of a process that has many, if each of them alone would
// most probably go on: docs/guarantees.md says how long that is. Renewals that were sent to the silent server would be
// lost with the time until they fail, so nearly all of them wait until it answers. Other callers wait for a shorter
// time than the leaders, or have no deadline.
func TestOutageStopsNoLeader(t *testing.T) {
	for _, c := range []struct{ gate, few, batch, leases int }{
		{8, 2, 500, 700}, // as mysqllease
		{4, 1, 500, 300}, // as pglease with a pool of four
		{8, 2, 128, 300}, // as redislease
		{4, 0, 0, 100},
		{1, 0, 0, 20},
	} {
		for _, lasts := range []time.Duration{7 * time.Second, 11 * time.Second, 12 * time.Second} {
			t.Run(fmt.Sprintf("%+v, %v", c, lasts), func(t *testing.T) {
				open := func() *served {
					s := newServed(c.gate, time.Millisecond)
					if c.few > 0 {
						s.batch(c.few, c.batch)
					}
					return s
				}
				crowded(t, 30*time.Second, c.leases, open, func(t *testing.T, crowd *crowd) {
					const each = 200 * time.Millisecond
					id := lease.ID{1}
					endless, end := context.WithCancel(t.Context())
					ask := func(req lease.Request) error {
						_, err := engine.NewAuthority(crowd.served, crowd.renew, nil).Do(endless, "patient", req)
						return err
					}
					if err := ask(lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: time.Hour}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					crowd.server.loseAll(lasts)
					var others sync.WaitGroup
					for range lasts / each {
						if c.few > 0 { // without batches, endless requests would take all places of the gate
							others.Go(func() { _ = ask(lease.Request{Action: lease.ActionRenew, ID: id}) }) // can fail
						}
						others.Go(func() {
							ctx, cancel := context.WithTimeout(t.Context(), each)
							defer cancel()
							_, _ = crowd.Load(ctx, "read") // can fail
						})
						time.Sleep(each)
					}
					time.Sleep(time.Minute)
					end()
					others.Wait()
					if held, stopped := crowd.held.Load(), crowd.stopped.Load(); held != int64(c.leases) || stopped > 1+int64(c.leases/200) { // one stops about every hundredth time
						t.Errorf("%d of %d leaders stopped", stopped, held)
					}
				})
			})
		}
	}
}

// Renewals that wait while a server is paused do not fail, and are not repeated: their time limit begins when they are
// sent. So the pause costs no lease, and only the requests that were under way have an error.
func TestRenewalsWaitWhileAServerIsPaused(t *testing.T) {
	const leases = fits * 8 / 10
	crowded(t, fifteen, leases, openFor(8), func(t *testing.T, c *crowd) {
		time.Sleep(2 * fifteen)
		before := c.failed.Load()
		c.server.set(perRequest, fifteen/3)
		time.Sleep(2 * fifteen)
		if failed := c.failed.Load() - before; failed > 40 || c.held.Load() != leases || c.lost.Load() > 0 {
			t.Errorf("%d renewals failed, want at most the 40 that were under way; %d of %d leases were lost", failed, c.lost.Load(), c.held.Load())
		}
		if took := time.Duration(c.latest.Load()); took < fifteen/6 || took > fifteen/2 {
			t.Errorf("the latest renewal took %v, but it waited for about %v before it was sent", took, fifteen/3)
		}
	})
}

// A renewal that waits to be sent when the term ends is not sent any more, and Close does not wait for it.
func TestCloseWhileARenewalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newServed(1, time.Millisecond)
		s := hold(t, engine.NewAuthority(c, c.renew, nil), session.Options{Duration: time.Hour})
		blocking, err := c.g.Enter(t.Context(), engine.Request{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute) // the renewal is due
		began := time.Now()
		if err := s.Close(t.Context()); !errors.Is(err, lease.ErrUnsent) {
			t.Errorf("a release that was not sent: %v", err)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("Close took %v, and the RequestTimeout of its release is 5s", took)
		}
		before, err := c.Store.Load(t.Context(), name)
		blocking.Leave(true)
		synctest.Wait()
		if after, again := c.Store.Load(t.Context(), name); err != nil || again != nil || after.Version != before.Version {
			t.Errorf("the lease was renewed after its term, until %v instead of %v", after.Record.Until, before.Record.Until)
		}
	})
}
