package session_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
	"pgregory.net/rapid"
)

// inBubble runs a world in a bubble of its own.
func inBubble(t *testing.T, set setup) (err error) {
	synctest.Test(t, func(*testing.T) { err = simulate(set) })
	return err
}

var steps = rapid.Custom(func(t *rapid.T) step {
	b := rapid.Byte()
	return step{b.Draw(t, "op"), b.Draw(t, "who"), b.Draw(t, "a"), b.Draw(t, "b")}
})

// The network of the holders loses, delays and fails requests, and their clocks run at the largest
// allowed errors. Holders are paused, and leases are broken, handed over and taken over. Each
// holder that believes that it holds the lease has the lock, and at most one holder believes it.
// Tokens rise, and each loss is reported once. SPEC H3, H8, H9, H11, H12, H15, H17, H19.
func TestWorld(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := setup{
			sessions: rapid.IntRange(1, 4).Draw(rt, "sessions"),
			infinite: rapid.Bool().Draw(rt, "infinite"),
			takeOver: rapid.Bool().Draw(rt, "take over"),
			rates:    rapid.SliceOfN(rapid.Byte(), 5, 5).Draw(rt, "rates"),
			steps:    rapid.SliceOfN(steps, 1, 40).Draw(rt, "steps"),
		}
		if err := inBubble(t, set); err != nil {
			rt.Fatal(err)
		}
	})
}

// drawn returns the setup that a seed determines.
func drawn(seed uint64) setup {
	r := rand.New(rand.NewPCG(seed, 0))
	b := func() uint8 { return uint8(r.Uint32()) }
	set := setup{sessions: 2 + r.IntN(2), infinite: r.IntN(4) == 0, takeOver: r.IntN(4) == 0, rates: []uint8{255}}
	for range set.sessions {
		set.rates = append(set.rates, uint8(255*r.IntN(2)))
	}
	for range 40 {
		set.steps = append(set.steps, step{b(), b(), b(), b()})
	}
	return set
}

// sticky plants a bug: CheckAlive returns a flag, and does not compare the clock with U.
type sticky struct {
	*session.Session
	flag atomic.Bool
}

func (s *sticky) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	tok, ok, err := s.Session.AcquireWithToken(ctx)
	if ok {
		s.flag.Store(true)
	}
	return tok, ok, err
}

func (s *sticky) Release(ctx context.Context) error {
	s.flag.Store(false)
	return s.Session.Release(ctx)
}

func (s *sticky) HandOver(ctx context.Context, to lease.ID) error {
	s.flag.Store(false)
	return s.Session.HandOver(ctx, to)
}

func (s *sticky) CheckAlive() bool { return s.flag.Load() }

// twice plants a bug: it reports each loss twice.
type twice struct{ *session.Session }

func (s twice) OnLost(f func(error)) func() bool {
	return s.Session.OnLost(func(err error) { f(err); f(err) })
}

// mute plants a bug: it does not report a loss by a break.
type mute struct{ *session.Session }

func (s mute) OnLost(f func(error)) func() bool {
	return s.Session.OnLost(func(err error) {
		if !errors.Is(err, lease.ErrBroken) {
			f(err)
		}
	})
}

// eager plants a bug: it reports a release as a loss.
type eager struct {
	*session.Session
	lost []func(error)
}

func (s *eager) OnLost(f func(error)) func() bool {
	s.lost = append(s.lost, f)
	return s.Session.OnLost(f)
}

func (s *eager) Release(ctx context.Context) error {
	if tok := s.Token(); tok != "" {
		for _, f := range s.lost {
			f(&lease.LostError{Name: name, Token: tok, Reason: lease.ErrReleased})
		}
	}
	return s.Session.Release(ctx)
}

// deaf plants a bug: after a HandOver, it still believes that it holds the lease.
type deaf struct {
	*session.Session
	until atomic.Pointer[time.Time]
	clock *skewed
}

func (s *deaf) HandOver(ctx context.Context, to lease.ID) error {
	if u, held := s.Until(); held && !u.IsZero() {
		s.until.Store(&u)
	}
	return s.Session.HandOver(ctx, to)
}

func (s *deaf) CheckAlive() bool {
	u := s.until.Load()
	return s.Session.CheckAlive() || u != nil && s.clock.Now().Before(*u)
}

var planted = []variant{
	{name: "belief from the answer", network: func(_ *network, c *skewed) func(context.Context, string, lease.Request, doer) (lease.Result, error) {
		return func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
			began := c.Now()
			res, err := do(ctx, name, req)
			if err == nil && (req.Action == lease.ActionAcquire || req.Action == lease.ActionRenew) {
				took := c.Now().Sub(began)
				c.mu.Lock()
				defer c.mu.Unlock()
				c.skipped += took // so that no time seems to have passed since the request was sent
			}
			return res, err
		}
	}},
	{name: "sticky flag", subject: func(s *session.Session, _ *skewed, _ *network) subject {
		f := &sticky{Session: s}
		s.OnLost(func(error) { time.Sleep(time.Second); f.flag.Store(s.CheckAlive()) })
		return f
	}},
	{name: "loss told twice", subject: func(s *session.Session, _ *skewed, _ *network) subject { return twice{s} }},
	{name: "loss not told", subject: func(s *session.Session, _ *skewed, _ *network) subject { return mute{s} }},
	{name: "release told as a loss", subject: func(s *session.Session, _ *skewed, _ *network) subject { return &eager{Session: s} }},
	{name: "belief after a hand-over", subject: func(s *session.Session, c *skewed, _ *network) subject {
		return &deaf{Session: s, clock: c}
	}},
	{name: "release by no ID", network: func(n *network, _ *skewed) func(context.Context, string, lease.Request, doer) (lease.Result, error) {
		return func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
			if req.Action == lease.ActionRelease {
				if res, err := lease.Inspect(ctx, n.Authority, name); err == nil && res.Record.State.Locked() {
					req.ID = res.Record.ID
				}
			}
			return do(ctx, name, req)
		}
	}},
	{name: "a clock that stands still for a second now and then", network: func(_ *network, c *skewed) func(context.Context, string, lease.Request, doer) (lease.Result, error) {
		return func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
			c.mu.Lock()
			c.skipped += time.Second
			c.mu.Unlock()
			return do(ctx, name, req)
		}
	}},
	{name: "tokens that repeat", network: func(_ *network, _ *skewed) func(context.Context, string, lease.Request, doer) (lease.Result, error) {
		return func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
			res, err := do(ctx, name, req)
			res.Record.Epoch = (res.Record.Epoch + 1) / 2
			return res, err
		}
	}},
}

// The checks of a world find every planted bug, and report nothing if no bug is planted. Without
// this test, a run without a violation would prove nothing.
func TestWorldFindsPlantedBugs(t *testing.T) {
	const most = 100
	for _, v := range planted {
		t.Run(v.name, func(t *testing.T) {
			for seed := range uint64(most) {
				set := drawn(seed)
				set.variant = v
				if err := inBubble(t, set); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found in %d worlds", most)
		})
	}
	t.Run("none", func(t *testing.T) {
		for seed := range uint64(5) {
			if err := inBubble(t, drawn(seed)); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	})
}
