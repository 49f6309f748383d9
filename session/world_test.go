package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A world contains some holders of one lease. Each holder has its own network and its own clock,
// which fail as a schedule says. The world checks the promises of the holders all the time.
type world struct {
	store    *network // belongs to no holder; reads and breaks the lease
	rate     float64  // the rate of the store's clock
	subjects []*subjectState
	excused  map[lease.ID]bool // IDs that another client broke or changed, so that their holders may believe wrongly
	tokens   map[lease.Token]bool
	mu       sync.Mutex
	err      error // the first violation
	running  sync.WaitGroup
}

// A subject is a Session that is tested, or a type with the same methods.
type subject interface {
	lease.TokenAcquirer
	ID() lease.ID
	Token() lease.Token
	Until() (time.Time, bool)
	HandOver(context.Context, lease.ID) error
	Close(context.Context) error
}

type subjectState struct {
	subject
	net    *network
	gate   *gated
	clock  *skewed
	ended  map[lease.Token]string // how each incarnation ended
	losses map[lease.Token]int
}

// A setup describes how a world begins.
type setup struct {
	sessions int
	infinite bool    // whether the last holder requests an infinite lease
	takeOver bool    // whether the first two holders have one owner, and the second takes over
	rates    []uint8 // the rates of the clocks, first the store's clock: 0 is 1-e, 255 is 1+e
	steps    []step
	variant  variant
}

// A step is one event in a world.
type step struct {
	op  uint8
	who uint8
	a   uint8
	b   uint8
}

// A variant plants a bug.
type variant struct {
	name    string
	subject func(*session.Session, *skewed, *network) subject
	network func(*network, *skewed) func(context.Context, string, lease.Request, doer) (lease.Result, error)
}

type doer = func(context.Context, string, lease.Request) (lease.Result, error)

const (
	worldDuration = 10 * time.Second
	worldRate     = 0.05
)

// simulate runs a world and returns the first violation. It must be called in a bubble.
func simulate(set setup) error {
	clock := newSkewed(set.rates[0])
	w := &world{rate: clock.rate, excused: map[lease.ID]bool{}, tokens: map[lease.Token]bool{}}
	store := lease.NewAuthority(memory.New(&memory.Options{Clock: clock}))
	w.store = over(store)
	for i := range set.sessions {
		w.add(set, i, store)
	}
	stop := w.sample()
	for _, st := range set.steps {
		synctest.Wait()
		w.step(st)
		synctest.Wait()
		w.look()
		if w.violated() != nil {
			break
		}
	}
	w.end()
	stop()
	return w.violated()
}

func (w *world) violated() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *world) add(set setup, i int, store lease.Authority) {
	clock := newSkewed(set.rates[i+1])
	net := over(store)
	g := &gated{Authority: net, watch: func(req lease.Request) {
		if req.Action == lease.ActionChange {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.excused[req.ID] = true
		}
	}}
	if set.variant.network != nil {
		g.do = set.variant.network(net, clock)
	}
	o := &session.Options{
		Duration: worldDuration, RenewInterval: 2 * time.Second, RequestTimeout: time.Second, RetryDelay: 500 * time.Millisecond,
		Watch: i%2 == 0, MaxClockDrift: worldRate, Clock: clock, Rand: &sequence{seed: uint64(i + 1)},
	}
	st := &subjectState{net: net, gate: g, clock: clock, ended: map[lease.Token]string{}, losses: map[lease.Token]int{}}
	o.Trace = &session.Trace{Acquire: func(info session.AcquireInfo) {
		if info.Token != "" {
			w.granted(st, info.Token)
		}
	}}
	if set.takeOver && i < 2 {
		o.Owner, o.TakeOver = "twin", i == 1
	}
	if set.infinite && i == set.sessions-1 {
		o.Duration = lease.Infinite
	}
	s, err := session.New(g, name, o)
	if err != nil {
		panic(err)
	}
	st.subject = s
	if set.variant.subject != nil {
		st.subject = set.variant.subject(s, clock, net)
	}
	st.OnLost(func(err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		var lost *lease.LostError
		if !errors.As(err, &lost) {
			w.fail("told %v", err)
			return
		}
		if st.losses[lost.Token]++; st.losses[lost.Token] > 1 {
			w.fail("session %d was told %d times of the loss of %v", i, st.losses[lost.Token], lost.Token)
		}
		if how, ended := st.ended[lost.Token]; !ended || how != "" {
			w.fail("session %d was told of the loss of %v, which ended so: %q", i, lost.Token, how)
		}
	})
	w.subjects = append(w.subjects, st)
}

// fail records a violation. The caller must hold mu.
func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// sample calls the method look ten times a second, also while a step sleeps.
func (w *world) sample() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100*time.Millisecond + 1)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.look()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// look checks that each Session that believes that it holds the lease really has it, except for the
// excused IDs.
func (w *world) look() {
	believers := 0
	for i, s := range w.subjects {
		if !s.CheckAlive() {
			continue
		}
		id, tok := s.ID(), s.Token()
		res, err := lease.Inspect(context.Background(), w.store.Authority, name)
		if err != nil {
			panic(err)
		}
		if !s.CheckAlive() || s.ID() != id || s.Token() != tok {
			continue // the belief changed during the check
		}
		w.mu.Lock()
		if !w.excused[id] {
			if believers++; believers > 1 {
				w.fail("%d sessions believe at the same time", believers)
			}
			if r := res.Record; !r.State.Locked() || r.ID != id {
				w.fail("session %d believes under %v, and the record is %+v", i, id, r)
			}
		}
		w.mu.Unlock()
	}
}

// step carries out one step. When the step begins, no other goroutine is running.
func (w *world) step(st step) {
	s := w.subjects[int(st.who)%len(w.subjects)]
	ctx := context.Background()
	faults := []fault{
		loseRequest, loseAnswer, failRequest, failAnswer,
		late(time.Duration(st.b) * 100 * time.Millisecond),
		slow(time.Duration(st.b)*50*time.Millisecond, 0),
		slow(0, time.Duration(st.b)*50*time.Millisecond),
	}
	f := faults[int(st.a)%len(faults)]
	switch st.op % 12 {
	case 0, 1, 2:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(1+st.a)*20*time.Millisecond)
		w.running.Go(func() {
			defer cancel()
			tok, ok, err := s.AcquireWithToken(ctx)
			w.mu.Lock()
			defer w.mu.Unlock()
			if _, known := s.ended[tok]; ok && !known {
				w.fail("%v was returned, but its grant not told", tok)
			}
			if ok != (tok != "") || ok && err != nil {
				w.fail("acquire: %q, %v, %v", tok, ok, err)
			}
		})
	case 3:
		s.gives("released", w, func() { _ = s.Release(done(ctx)) })
	case 4:
		to := w.subjects[int(st.a)%len(w.subjects)]
		s.gives("handed over", w, func() {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if to != s {
				_ = s.HandOver(ctx, to.ID())
			}
		})
	case 5:
		w.breaks(time.Duration(st.a) * 50 * time.Millisecond)
	case 6:
		s.net.meet(lease.ActionRenew, f)
	case 7:
		s.net.meet(lease.ActionAcquire, f)
	case 8:
		s.net.meet([]lease.Action{lease.ActionRelease, lease.ActionChange}[int(st.b)%2], f)
	case 9:
		s.clock.pause(true)
		s.gate.pause(true)
		time.AfterFunc(time.Duration(st.a)*100*time.Millisecond, func() {
			s.clock.pause(false)
			s.gate.pause(false)
		})
	case 10:
		if st.a%4 == 0 {
			s.net.keep(lease.ActionRenew, f)
		} else {
			s.net.keep(lease.ActionRenew, nil)
		}
	case 11: // one slow answer, and then no answer
		s.net.meet(lease.ActionRenew, slow(0, time.Duration(st.a)*20*time.Millisecond))
		for range 20 {
			s.net.meet(lease.ActionRenew, failRequest)
		}
	}
	time.Sleep(time.Duration(st.b) * 40 * time.Millisecond)
}

// done returns a context that is done, for a call whose outcome does not matter.
func done(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// gives calls f, which releases or hands over the lease of a subject, and records how the
// incarnation ended.
func (s *subjectState) gives(how string, w *world, f func()) {
	tok := s.Token()
	if tok != "" && s.CheckAlive() {
		w.mu.Lock()
		if how != "handed over" {
			s.ended[tok] = how
		}
		w.mu.Unlock()
	}
	f()
	if how == "handed over" && tok != "" && !s.CheckAlive() {
		w.mu.Lock()
		s.ended[tok] = how
		w.mu.Unlock()
	}
}

// breaks breaks the lease. If the holder cannot learn of the break in time, its ID is excused.
func (w *world) breaks(period time.Duration) {
	before, err := lease.Inspect(context.Background(), w.store.Authority, name)
	if err != nil {
		panic(err)
	}
	left, err := lease.Break(context.Background(), w.store.Authority, name, lease.Grace(period))
	if err != nil {
		return
	}
	for _, s := range w.subjects {
		if s.ID() != before.Record.ID {
			continue
		}
		u, held := s.Until()
		believes := time.Duration(float64(u.Sub(s.clock.Now())) / s.clock.rate)
		if s.gate.flying.Load() > 0 || held && (u.IsZero() || time.Duration(float64(left)/w.rate) < believes) {
			w.mu.Lock()
			w.excused[before.Record.ID] = true
			w.mu.Unlock()
		}
	}
}

// end closes every holder, and checks that each loss was reported once.
func (w *world) end() {
	for _, s := range w.subjects {
		s.clock.pause(false)
		s.gate.pause(false)
		s.net.heal()
	}
	time.Sleep(time.Minute) // wait for requests in flight, and for losses that are due
	synctest.Wait()
	w.running.Wait()
	w.look()
	for _, s := range w.subjects {
		s.gives("closed", w, func() {})
		if err := s.Close(context.Background()); err != nil {
			w.mu.Lock()
			w.fail("close: %v", err)
			w.mu.Unlock()
		}
	}
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, s := range w.subjects {
		for tok, how := range s.ended {
			if how == "" && s.losses[tok] != 1 {
				w.fail("session %d was told %d times of the loss of %v", i, s.losses[tok], tok)
			}
		}
	}
}

// The world calls the method granted at the beginning of every incarnation.
func (w *world) granted(s *subjectState, tok lease.Token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tokens[tok] {
		w.fail("token %v was issued twice", tok)
	}
	for earlier := range s.ended {
		if tok.Compare(earlier) <= 0 {
			w.fail("token %v was issued after %v", tok, earlier)
		}
	}
	w.tokens[tok] = true
	s.ended[tok] = ""
}
