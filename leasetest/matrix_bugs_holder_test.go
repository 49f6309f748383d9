package leasetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
	"github.com/fencedlease/lease/session"
)

// A holderBug changes a method or the requests of a session.Session.
type holderBug struct {
	state  string // of the holder in which a method is wrong: idle, held, breaking, lost, released or closed
	method string
	with   func(b *wrappedHolder, call func() (bool, error)) (bool, error)

	action lease.Action // whose requests are wrong
	sends  func(ctx context.Context, name string, req lease.Request, do func(context.Context, string, lease.Request) (lease.Result, error)) (lease.Result, error)

	loss func(err *lease.LostError) (times int) // changes err, and returns how often to call each handler
}

// A wrappedHolder is a session.Session with a bug.
type wrappedHolder struct {
	*session.Session
	bug holderBug

	mu    sync.Mutex
	state string
}

type buggyRequests struct {
	lease.Authority
	bug holderBug
}

func (a buggyRequests) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action != a.bug.action {
		return a.Authority.Do(ctx, name, req)
	}
	return a.bug.sends(ctx, name, req, a.Authority.Do)
}

func newWrappedHolder(t testing.TB, h Holder, bug holderBug) lease.Lease {
	if bug.action != 0 {
		h.Authority = passon.Authority(buggyRequests{h.Authority, bug}, h.Authority)
	}
	s, err := session.New(h.Authority, h.Name, &session.Options{
		Owner: h.Owner, TakeOver: h.TakeOver, Duration: h.Duration, Clock: h.Clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx)
	})
	b := &wrappedHolder{Session: s, bug: bug, state: "idle"}
	s.OnLost(func(error) { b.set("lost") })
	s.OnBreaking(func(time.Time) { b.set("breaking") })
	return b
}

func (b *wrappedHolder) set(state string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = state
}

// wrong reports whether the bug is about this method now.
func (b *wrappedHolder) wrong(method string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bug.method == method && b.bug.state == b.state
}

func (b *wrappedHolder) call(method string, call func() (bool, error)) (bool, error) {
	if b.wrong(method) {
		return b.bug.with(b, call)
	}
	return call()
}

func (b *wrappedHolder) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := b.AcquireWithToken(ctx)
	return ok, err
}

func (b *wrappedHolder) AcquireWithToken(ctx context.Context) (tok lease.Token, ok bool, err error) {
	ok, err = b.call("Acquire", func() (bool, error) {
		tok, ok, err = b.Session.AcquireWithToken(ctx)
		return ok, err
	})
	alive := b.Session.CheckAlive()
	b.mu.Lock()
	defer b.mu.Unlock()
	if alive && b.state != "breaking" {
		b.state = "held"
	}
	return tok, ok, err
}

func (b *wrappedHolder) CheckAlive() bool {
	ok, _ := b.call("CheckAlive", func() (bool, error) { return b.Session.CheckAlive(), nil })
	return ok
}

func (b *wrappedHolder) Release(ctx context.Context) error {
	_, err := b.call("Release", func() (bool, error) { return true, b.Session.Release(ctx) })
	if b.mu.Lock(); b.state != "closed" {
		b.state = "released"
	}
	b.mu.Unlock()
	return err
}

func (b *wrappedHolder) Close(ctx context.Context) error {
	_, err := b.call("Close", func() (bool, error) { return true, b.Session.Close(ctx) })
	b.set("closed")
	return err
}

func (b *wrappedHolder) Wait(ctx context.Context) error {
	_, err := b.call("Wait", func() (bool, error) { return true, b.Session.Wait(ctx) })
	return err
}

func (b *wrappedHolder) HandOver(ctx context.Context, to lease.ID) error {
	_, err := b.call("HandOver", func() (bool, error) { return true, b.Session.HandOver(ctx, to) })
	return err
}

func (b *wrappedHolder) WhileHeld(ctx context.Context) (context.Context, context.CancelFunc) {
	if !b.wrong("WhileHeld") {
		return b.Session.WhileHeld(ctx)
	}
	other, cancel := context.WithCancel(ctx)
	if ok, _ := b.bug.with(b, nil); !ok {
		cancel()
	}
	return other, cancel
}

func (b *wrappedHolder) OnLost(f func(error)) (stop func() bool) {
	if b.bug.loss == nil {
		return b.Session.OnLost(f)
	}
	return b.Session.OnLost(func(err error) {
		if lost := (*lease.LostError)(nil); errors.As(err, &lost) {
			copied := *lost
			for range b.bug.loss(&copied) {
				f(&copied)
			}
		}
	})
}

func wrappedHolders(bug holderBug) *suite {
	o := &Options{Bubble: true, Seed: 1}
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		return newWrappedHolder(t, h, bug)
	}}
}

type call = func() (bool, error)

// methodFaults are what may go wrong in a method, with the states in which it is wrong.
var methodFaults = []struct {
	method, what string
	states       []string
	with         func(b *wrappedHolder, do call) (bool, error)
}{
	{"CheckAlive", "is true", []string{"idle", "lost", "released", "closed"}, func(*wrappedHolder, call) (bool, error) { return true, nil }},
	{"CheckAlive", "is false", []string{"held", "breaking"}, func(*wrappedHolder, call) (bool, error) { return false, nil }},
	{"CheckAlive", "takes a while", []string{"held"}, func(_ *wrappedHolder, do call) (bool, error) { time.Sleep(time.Second); return do() }},
	{"Acquire", "is false", []string{"idle", "held", "breaking", "lost", "released", "closed"}, func(*wrappedHolder, call) (bool, error) { return false, nil }},
	{"Acquire", "is an error", []string{"idle", "held", "breaking", "lost", "released"}, func(*wrappedHolder, call) (bool, error) { return false, errors.New("refused") }},
	{"Acquire", "is true", []string{"idle", "lost", "released", "closed"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, nil }},
	{"Acquire", "waits", []string{"idle", "released", "lost"}, func(_ *wrappedHolder, do call) (bool, error) { time.Sleep(time.Minute); return do() }},
	{"Release", "does nothing", []string{"held", "breaking"}, func(*wrappedHolder, call) (bool, error) { return true, nil }},
	{"Release", "is an error", []string{"idle", "held", "breaking", "released", "closed"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, errors.New("failed") }},
	{"Release", "is an error, and does nothing", []string{"held", "breaking"}, func(*wrappedHolder, call) (bool, error) { return true, errors.New("failed") }},
	{"Release", "hides its error", []string{"held"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, nil }},
	{"Close", "does nothing", []string{"idle", "held"}, func(*wrappedHolder, call) (bool, error) { return true, nil }},
	{"Close", "is an error", []string{"held", "closed"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, errors.New("failed") }},
	{"Wait", "returns at once", []string{"idle"}, func(*wrappedHolder, call) (bool, error) { return true, nil }},
	{"Wait", "is an error", []string{"idle"}, func(*wrappedHolder, call) (bool, error) { return true, errors.New("failed") }},
	{"Wait", "hides its error", []string{"idle"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, nil }},
	{"HandOver", "does nothing", []string{"held"}, func(*wrappedHolder, call) (bool, error) { return true, nil }},
	{"HandOver", "is an error", []string{"held"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, errors.New("failed") }},
	{"HandOver", "hides its error", []string{"idle", "held"}, func(_ *wrappedHolder, do call) (bool, error) { _, _ = do(); return true, nil }},
	{"WhileHeld", "does not end", []string{"idle", "held", "closed"}, func(*wrappedHolder, call) (bool, error) { return true, nil }},
	{"WhileHeld", "has ended", []string{"held"}, func(*wrappedHolder, call) (bool, error) { return false, nil }},
}

type doer = func(context.Context, string, lease.Request) (lease.Result, error)

// requestFaults are what may go wrong with the requests of an action.
var requestFaults = []struct {
	what    string
	actions []lease.Action
	sends   func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error)
}{
	{"has no bound", []lease.Action{lease.ActionRenew, lease.ActionRelease}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		return do(context.WithoutCancel(ctx), name, req)
	}},
	{"is sent under a done context", []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		done, cancel := context.WithCancel(ctx)
		cancel()
		return do(done, name, req)
	}},
	{"is sent twice at once", []lease.Action{lease.ActionAcquire, lease.ActionRenew}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		go func() { _, _ = do(ctx, name, req) }()
		return do(ctx, name, req)
	}},
	{"is sent for another name", []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		return do(ctx, name+"/other", req)
	}},
	{"has another ID", []lease.Action{lease.ActionRenew, lease.ActionRelease, lease.ActionChange}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		req.ID[3] ^= 1
		return do(ctx, name, req)
	}},
	{"has always the same ID", []lease.Action{lease.ActionAcquire}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		req.Proposed = lease.ID{1, 2, 3}
		return do(ctx, name, req)
	}},
	{"has no owner", []lease.Action{lease.ActionAcquire}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		req.Owner = ""
		return do(ctx, name, req)
	}},
	{"has another owner", []lease.Action{lease.ActionAcquire, lease.ActionChange}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		req.Owner = "x" + req.Owner
		return do(ctx, name, req)
	}},
	{"has half the duration", []lease.Action{lease.ActionAcquire}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		if req.Duration != lease.Infinite {
			req.Duration /= 2
		}
		return do(ctx, name, req)
	}},
	{"has twice the duration", []lease.Action{lease.ActionAcquire}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		if req.Duration != lease.Infinite {
			req.Duration *= 2
		}
		return do(ctx, name, req)
	}},
	{"is not sent", []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease, lease.ActionChange}, func(_ context.Context, name string, req lease.Request, _ doer) (lease.Result, error) {
		now := time.Now()
		return lease.Result{Record: lease.Record{State: lease.Leased, ID: req.Proposed, Duration: time.Minute, Until: now.Add(time.Minute), Epoch: 7}, Now: now, MinRemaining: time.Minute}, nil
	}},
	{"takes a refusal for a grant", []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionChange}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if lease.CodeOf(err).Refusal() {
			res.MinRemaining = max(res.MinRemaining, time.Minute)
			return res, nil
		}
		return res, err
	}},
	{"takes an error for a grant", []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease, lease.ActionChange}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if err != nil && lease.CodeOf(err) == 0 {
			now := time.Now().UTC().Round(0)
			r := lease.Record{State: lease.Leased, ID: req.ID, Duration: time.Hour, Until: now.Add(time.Hour), Epoch: 1}
			if req.Action != lease.ActionRenew {
				r.ID = req.Proposed
			}
			return lease.Result{Record: r, Now: now, MinRemaining: time.Hour}, nil
		}
		return res, err
	}},
	{"takes an error for a refusal", []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionRelease}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if err != nil && lease.CodeOf(err) == 0 {
			err = fmt.Errorf("%w: %w", lease.ErrHeldByOther, err)
		}
		return res, err
	}},
	{"takes a refusal for an error", []lease.Action{lease.ActionAcquire, lease.ActionRenew}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if lease.CodeOf(err).Refusal() {
			return lease.Result{}, errors.New("failed")
		}
		return res, err
	}},
	{"believes twice what is certain", []lease.Action{lease.ActionAcquire, lease.ActionRenew}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if res.MinRemaining < time.Hour {
			res.MinRemaining *= 2
		}
		return res, err
	}},
	{"believes half of what is certain", []lease.Action{lease.ActionAcquire, lease.ActionRenew}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if res.MinRemaining != lease.Infinite {
			res.MinRemaining /= 2
		}
		return res, err
	}},
	{"shows an older token", []lease.Action{lease.ActionAcquire}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		res, err := do(ctx, name, req)
		if res.Record.Epoch > 0 {
			res.Record.Epoch = 1
		}
		return res, err
	}},
	{"is late", []lease.Action{lease.ActionAcquire, lease.ActionRelease}, func(ctx context.Context, name string, req lease.Request, do doer) (lease.Result, error) {
		time.Sleep(3 * time.Second)
		return do(ctx, name, req)
	}},
}

// lossFaults are what may go wrong when handlers of OnLost are called.
var lossFaults = map[string]func(err *lease.LostError) int{
	"is not told":          func(*lease.LostError) int { return 0 },
	"is told twice":        func(*lease.LostError) int { return 2 },
	"has another name":     func(err *lease.LostError) int { err.Name = "other"; return 1 },
	"has another token":    func(err *lease.LostError) int { err.Token = lease.TokenOf(99); return 1 },
	"has no token":         func(err *lease.LostError) int { err.Token = ""; return 1 },
	"is told as expired":   func(err *lease.LostError) int { err.Reason = lease.ErrExpired; return 1 },
	"is told as released":  func(err *lease.LostError) int { err.Reason = lease.ErrReleased; return 1 },
	"is told as broken":    func(err *lease.LostError) int { err.Reason = lease.ErrBroken; return 1 },
	"is told an hour late": func(*lease.LostError) int { time.Sleep(time.Hour); return 1 },
}

// holderCellBugs are a bug for each method in each state, each request, and each loss.
func holderCellBugs() (all []cellBug) {
	add := func(part, what string, bug holderBug) {
		all = append(all, cellBug{"holder", part, what, func() *suite { return wrappedHolders(bug) }})
	}
	for _, f := range methodFaults {
		for _, state := range f.states {
			add(f.method+" x "+state, f.what, holderBug{state: state, method: f.method, with: f.with})
		}
	}
	for _, f := range requestFaults {
		for _, action := range f.actions {
			add(action.String(), f.what, holderBug{action: action, sends: f.sends})
		}
	}
	for what, loss := range lossFaults {
		add("loss", what, holderBug{loss: loss})
	}
	return all
}
