package leasetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// A dumbLease is a holder in its simplest form, written without a look at package session:
// a loop an incarnation, and one lock. Each of the bugs that it may have is one that
// somebody's lease could have, or had.
type dumbLease struct {
	Holder
	bug   string
	clock session.Clock
	quit  chan struct{} // closed at the end of the test
	life  context.Context
	tasks sync.WaitGroup

	mu         chan struct{} // a lock that a test can end
	turn       chan struct{} // of acquires, and of what undoes them
	held       *dumbHolding
	handlers   []*dumbHandler
	debts      []lease.ID // to be released
	lastLoss   error
	superseded chan struct{} // closed by Release
	next       atomic.Uint64
}

type dumbHolding struct {
	id       lease.ID
	token    lease.Token
	until    time.Time
	breaking bool
	stop     chan struct{}
}

type dumbHandler struct{ f func(error) }

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func newDumbLease(t testing.TB, h Holder, bug string) *dumbLease {
	l := &dumbLease{Holder: h, bug: bug, clock: h.Clock, quit: make(chan struct{}),
		mu: make(chan struct{}, 1), turn: make(chan struct{}, 1), superseded: make(chan struct{})}
	if l.clock == nil {
		l.clock = systemClock{}
	}
	l.next.Store(uint64(time.Now().UnixNano()))
	life, end := context.WithCancel(context.Background())
	l.life = life
	t.Cleanup(func() {
		close(l.quit)
		end()
		l.tasks.Wait()
	})
	return l
}

func (l *dumbLease) lock() {
	select {
	case l.mu <- struct{}{}:
	case <-l.quit:
		runtime.Goexit()
	}
}

func (l *dumbLease) unlock() { <-l.mu }

// do makes a request with a bound of its own.
func (l *dumbLease) do(ctx context.Context, req lease.Request) (lease.Result, error) {
	bound := l.timeout()
	if req.Action == lease.Renew && l.bug == "gives a renewal all the time that is left" {
		bound = l.Duration
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	return l.Over.Do(ctx, l.Name, req)
}

func (l *dumbLease) timeout() time.Duration { return min(l.Duration, time.Minute) / 6 }

// mint makes an ID.
func (l *dumbLease) mint() (id lease.ID) {
	seed := fmt.Sprintf("%p %d", l, l.next.Add(1))
	switch l.bug {
	case "its ID is its owner":
		seed = l.Owner
	case "its ID is its own for ever":
		seed = fmt.Sprintf("%p", l)
	}
	sum := sha256.Sum256([]byte(seed))
	binary.BigEndian.PutUint64(id[:8], binary.BigEndian.Uint64(sum[:8]))
	copy(id[8:], sum[8:16])
	return id
}

func (l *dumbLease) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := l.AcquireWithToken(ctx)
	return ok, err
}

func (l *dumbLease) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	if l.bug == "does not look at a done context" && ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	l.lock()
	if h := l.held; h != nil && l.alive(h) && l.bug != "asks again while holding" {
		defer l.unlock()
		return h.token, true, nil
	}
	superseded := l.superseded
	l.unlock()
	if l.bug != "its attempts overlap" {
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return "", false, ctx.Err()
		case <-superseded:
			return "", false, lease.ErrReleased
		}
	}
	free := func() {
		if l.bug != "its attempts overlap" {
			<-l.turn
		}
	}
	l.lock()
	if h := l.held; h != nil && l.alive(h) && l.bug != "asks again while holding" {
		defer l.unlock()
		free()
		return h.token, true, nil
	}
	l.unlock()
	if l.bug != "takes its own earlier ID for another's" {
		if err := l.settle(ctx); err != nil {
			free()
			return "", false, err
		}
	}
	return l.attempt(ctx, superseded, free)
}

func (l *dumbLease) attempt(ctx context.Context, superseded chan struct{}, free func()) (lease.Token, bool, error) {
	id := l.mint()
	type answer struct {
		res  lease.Result
		sent time.Time
		err  error
	}
	answers := make(chan answer, 1)
	l.tasks.Go(func() {
		sent := l.clock.Now()
		res, err := l.do(context.WithoutCancel(ctx), lease.Request{Action: lease.Acquire, Proposed: id, Owner: l.Owner, Duration: l.Duration})
		if l.bug == "counts belief from the answer" {
			sent = l.clock.Now()
		}
		answers <- answer{res, sent, err}
	})
	undo := func() { // in the background, holding the turn
		l.tasks.Go(func() {
			defer free()
			a := <-answers
			if l.bug == "lets a late acquire win" && a.err == nil {
				l.begin(ctx, id, a.res, a.sent)
				return
			}
			if l.bug != "leaves orphans" && (a.err == nil || !lease.CodeOf(a.err).Refusal()) {
				l.undo(ctx, id, a.err != nil)
			}
		})
	}
	done := ctx.Done()
	if l.bug == "waits for the authority, not for its context" {
		done = nil
	}
	if l.bug == "release does not reach an acquire under way" {
		superseded = nil
	}
	var a answer
	select {
	case a = <-answers:
	case <-done:
		if l.bug == "undoes before the attempt has settled" {
			l.tasks.Go(func() {
				l.undo(ctx, id, false)
				free()
			})
			return "", false, ctx.Err()
		}
		undo()
		return "", false, ctx.Err()
	case <-superseded:
		undo()
		return "", false, lease.ErrReleased
	}
	switch code := lease.CodeOf(a.err); {
	case a.err == nil:
		if !l.clock.Now().Before(l.believe(a.sent, a.res.Sure)) && l.bug != "believes what is over" {
			answers <- a
			undo()
			if l.bug == "tells a late grant as a loss" {
				l.tell(slices.Clone(l.handlers), lease.ErrExpired)
			}
			return "", false, lease.ErrExpired
		}
		tok := l.begin(ctx, id, a.res, a.sent)
		free()
		return tok, true, nil
	case code == lease.ErrHeld, code == lease.ErrBreaking, code != 0 && l.bug == "takes every refusal for held":
		free()
		switch l.bug {
		case "takes held for an error":
			return "", false, a.err
		case "takes held for granted":
			return l.begin(ctx, id, a.res, a.sent), true, nil
		case "tells a failed acquire as a loss":
			l.tell(slices.Clone(l.handlers), a.err)
		case "waits for its turn":
			<-l.clock.After(l.timeout())
		case "waits for its own duration":
			if granted := a.res.Record.Until.Add(-a.res.Record.Duration); a.res.Now.Sub(granted) > l.Duration {
				_, _ = l.do(ctx, lease.Request{Action: lease.Break, Period: lease.In(0)})
				return l.AcquireWithToken(ctx)
			}
		}
		return "", false, nil
	case l.bug == "takes an error for held":
		free()
		return "", false, nil
	}
	if l.bug == "forgets what it may have acquired" {
		free()
		return "", false, a.err
	}
	answers <- a
	undo()
	return "", false, a.err
}

// undo releases an ID that nobody believes in. If its acquire may still arrive, and would
// stay for ever, both are written over it.
func (l *dumbLease) undo(ctx context.Context, id lease.ID, doubtful bool) {
	if l.bug != "undoes under the caller's context" {
		ctx = context.WithoutCancel(ctx)
	}
	_, err := l.do(ctx, lease.Request{Action: lease.Release, ID: id})
	if lease.CodeOf(err) == lease.ErrIDMismatch && doubtful && l.Duration == lease.Infinite && l.bug != "leaves an infinite orphan" {
		if _, err = l.do(ctx, lease.Request{Action: lease.Acquire, Proposed: id, Owner: l.Owner, Duration: l.Duration}); err == nil {
			_, err = l.do(ctx, lease.Request{Action: lease.Release, ID: id})
		}
	}
	if err != nil && !lease.CodeOf(err).Refusal() {
		l.lock()
		l.debts = append(l.debts, id)
		l.unlock()
	}
}

// settle releases what is owed, in its turn.
func (l *dumbLease) settle(ctx context.Context) error {
	l.lock()
	debts := l.debts
	l.unlock()
	for _, id := range debts {
		req := lease.Request{Action: lease.Release, ID: id}
		if l.bug == "breaks what it releases" {
			req = lease.Request{Action: lease.Break, Period: lease.In(0)}
		}
		_, err := l.do(ctx, req)
		if err != nil && !lease.CodeOf(err).Refusal() {
			return err
		}
		l.lock()
		l.debts = slices.DeleteFunc(l.debts, func(d lease.ID) bool { return d == id })
		l.unlock()
	}
	return nil
}

// believe is the end of what may be believed of a grant.
func (l *dumbLease) believe(sent time.Time, sure time.Duration) time.Time {
	d := min(sure, l.Duration)
	switch {
	case l.bug == "believes what it asked for":
		d = l.Duration
	case l.bug == "believes what the authority says":
		d = sure
	}
	switch {
	case d == lease.Infinite:
		return sent.AddDate(1000, 0, 0)
	case l.bug == "trusts its clock to the last":
		return sent.Add(d)
	case l.bug == "gives away half":
		return sent.Add(d / 2)
	}
	return sent.Add(d - d/400)
}

func (l *dumbLease) alive(h *dumbHolding) bool {
	if l.bug == "CheckAlive is a flag" {
		return true
	}
	return l.clock.Now().Before(h.until)
}

func (l *dumbLease) CheckAlive() bool {
	if l.bug == "CheckAlive asks the authority" {
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout())
		defer cancel()
		res, err := lease.Inspect(ctx, l.Over, l.Name)
		return err == nil && l.held != nil && res.Record.ID == l.held.id && res.Record.State.Locked()
	}
	l.lock()
	defer l.unlock()
	return l.held != nil && l.alive(l.held)
}

// begin starts an incarnation.
func (l *dumbLease) begin(ctx context.Context, id lease.ID, res lease.Result, sent time.Time) lease.Token {
	h := &dumbHolding{id: id, token: res.Record.Token(), until: l.believe(sent, res.Sure), stop: make(chan struct{})}
	switch l.bug {
	case "believes a moment later":
		l.tasks.Go(func() {
			time.Sleep(time.Nanosecond)
			l.lock()
			l.held = h
			l.unlock()
		})
		return h.token
	case "counts its own tokens":
		h.token = lease.TokenOf(l.next.Add(1) & 0xff)
	case "writes tokens without zeros":
		h.token = lease.Token(fmt.Sprint("v", res.Record.Epoch))
	case "gives every acquire the same token":
		h.token = lease.TokenOf(7)
	}
	l.lock()
	defer l.unlock()
	if old := l.held; old != nil {
		close(old.stop)
	}
	l.held = h
	if l.bug == "renews only the first incarnation" && l.lastLoss == errSeen {
		return h.token
	}
	l.lastLoss = errSeen
	life := context.Background()
	if l.bug == "lives in the context of its acquire" {
		life = ctx
	}
	l.tasks.Go(func() { l.keep(life, h) })
	return h.token
}

var errSeen = errors.New("an incarnation has begun before")

type dumbRenewal struct {
	res  lease.Result
	sent time.Time
	err  error
}

// keep renews an incarnation until it ends.
func (l *dumbLease) keep(life context.Context, h *dumbHolding) {
	interval := min(l.Duration, time.Minute) / 3
	next := l.clock.After(interval)
	if l.bug == "does not renew" {
		next = nil
	}
	answers := make(chan dumbRenewal, 100)
	flying := false
	for {
		l.lock()
		left := h.until.Sub(l.clock.Now())
		over := l.held != h
		l.unlock()
		if over && l.bug != "goes on renewing after a release" {
			if flying && l.bug != "an answer revives what ended" {
				l.tasks.Go(func() { l.late(h, answers) })
			} else if flying {
				l.tasks.Go(func() { l.revive(h, answers) })
			}
			return
		}
		if left <= 0 && !over {
			if !(flying && l.bug == "waits for a renewal that hangs") {
				reason := lease.ErrExpired
				if h.breaking {
					reason = lease.ErrBroken
				}
				l.lose(h, reason)
				continue
			}
			left = time.Hour
		}
		end := l.clock.After(max(left, 0))
		stop := h.stop
		if l.bug == "goes on renewing after a release" {
			stop, end = nil, nil
		}
		select {
		case <-l.quit:
			return
		case <-stop:
		case <-life.Done():
			l.lose(h, lease.ErrExpired)
		case <-end:
		case <-next:
			next = l.clock.After(interval)
			if flying && l.bug != "its renewals overlap" {
				continue
			}
			flying = true
			l.tasks.Go(func() {
				sent := l.clock.Now()
				req := lease.Request{Action: lease.Renew, ID: h.id}
				if l.bug == "renews by acquiring" {
					req = lease.Request{Action: lease.Acquire, Proposed: h.id, Owner: l.Owner, Duration: l.Duration}
				}
				res, err := l.do(life, req)
				if l.bug == "counts belief from the answer" {
					sent = l.clock.Now()
				}
				answers <- dumbRenewal{res, sent, err}
			})
		case a := <-answers:
			flying = false
			if l.renewed(h, a) {
				next = l.clock.After(max(0, interval-l.clock.Now().Sub(a.sent)))
			} else {
				next = l.clock.After(l.timeout() / 2)
			}
		}
	}
}

// renewed takes note of the answer to a renewal, and reports whether there was one.
func (l *dumbLease) renewed(h *dumbHolding, a dumbRenewal) bool {
	code, r := lease.CodeOf(a.err), a.res.Record
	shown := !a.res.Now.IsZero() && r.ID == h.id
	l.lock()
	target := l.held
	if l.bug != "an answer reaches whoever holds" && target != h {
		target = nil
	}
	l.unlock()
	if target == nil {
		return true
	}
	switch {
	case a.err == nil,
		code.Refusal() && shown && r.State == lease.Leased && l.bug != "takes every refusal for a loss":
		l.lock()
		target.until = l.believe(a.sent, a.res.Sure)
		l.unlock()
	case !code.Refusal():
		if l.bug == "loses at the first error" {
			l.lose(h, lease.ErrExpired)
		}
		return false
	case shown && r.State == lease.Breaking && a.res.Sure > 0 && l.bug != "gives up at once when it breaks":
		if l.bug == "does not see a break" {
			return true
		}
		l.lock()
		h.breaking = true
		if end := l.believe(a.sent, a.res.Sure); end.Before(h.until) && l.bug != "keeps a break to the end of its duration" {
			h.until = end
		}
		l.unlock()
	case l.bug == "does not see a break" && code == lease.ErrBroken:
	case l.bug == "takes a refusal for an error":
		return false
	default:
		if shown && (r.State == lease.Breaking || r.State == lease.Broken) {
			code = lease.ErrBroken
		}
		l.lose(target, code)
	}
	return true
}

// late releases what a renewal holds that was carried out after the end.
func (l *dumbLease) late(h *dumbHolding, answers <-chan dumbRenewal) {
	select {
	case a := <-answers:
		switch l.bug {
		case "an answer reaches whoever holds":
			l.renewed(h, a)
		case "an answer prolongs whatever is held":
			l.lock()
			if l.held != nil {
				l.held.until = l.believe(l.clock.Now(), a.res.Sure)
			}
			l.unlock()
		}
		if (a.err == nil || !lease.CodeOf(a.err).Refusal()) && l.bug != "leaves what a late renewal holds" {
			l.undo(context.Background(), h.id, false)
		}
	case <-l.quit:
	}
}

func (l *dumbLease) revive(h *dumbHolding, answers <-chan dumbRenewal) {
	select {
	case a := <-answers:
		if a.err == nil {
			l.lock()
			h.until, l.held = l.believe(a.sent, a.res.Sure), h
			l.unlock()
		}
	case <-l.quit:
	}
}

// lose ends an incarnation as lost.
func (l *dumbLease) lose(h *dumbHolding, reason lease.Code) {
	l.lock()
	if l.held != h {
		l.unlock()
		return
	}
	l.held = nil
	close(h.stop)
	expired := reason == lease.ErrExpired && l.bug != "leaves what a late renewal holds"
	if expired && l.bug != "forgets what it has lost" {
		l.debts = append(l.debts, h.id)
	}
	handlers := slices.Clone(l.handlers)
	if l.bug == "calls handlers with its lock held" {
		for _, f := range handlers {
			f.f(&lease.LostError{Name: l.Name, Token: h.token, Reason: reason})
		}
		handlers = nil
	}
	var err error = &lease.LostError{Name: l.Name, Token: h.token, Reason: reason}
	l.lastLoss = err
	l.unlock()
	switch l.bug {
	case "tells a bare code":
		err = reason
	case "tells every loss as expired":
		err = &lease.LostError{Name: l.Name, Token: h.token, Reason: lease.ErrExpired}
	case "tells no loss":
		handlers = nil
	case "tells a loss only once in its life":
		l.lock()
		l.handlers = nil
		l.unlock()
	case "tells a loss twice":
		l.tell(handlers, err)
	}
	l.tell(handlers, err)
	if expired {
		l.tasks.Go(func() {
			select {
			case l.turn <- struct{}{}:
				_ = l.settle(context.Background())
				<-l.turn
			case <-l.quit:
			}
		})
	}
}

func (l *dumbLease) tell(handlers []*dumbHandler, err error) {
	call := func(h *dumbHandler) {
		defer func() { _ = recover() }()
		h.f(err)
	}
	if l.bug == "calls handlers one after the other" {
		l.tasks.Go(func() {
			for _, h := range handlers {
				call(h)
			}
		})
		return
	}
	if l.bug == "a panic ends the telling" {
		l.tasks.Go(func() {
			defer func() { _ = recover() }()
			for _, h := range handlers {
				h.f(err)
			}
		})
		return
	}
	for _, h := range handlers {
		l.tasks.Go(func() { call(h) })
	}
}

func (l *dumbLease) OnLost(f func(error)) (stop func() bool) {
	l.lock()
	defer l.unlock()
	h := &dumbHandler{f}
	l.handlers = append(slices.Clone(l.handlers), h)
	if lost := (*lease.LostError)(nil); l.bug == "tells a handler what happened before it" && errors.As(l.lastLoss, &lost) {
		l.tasks.Go(func() { f(l.lastLoss) })
	}
	return func() bool {
		l.lock()
		defer l.unlock()
		i := slices.Index(l.handlers, h)
		if i < 0 || l.bug == "does not unregister" {
			return i >= 0
		}
		l.handlers = slices.Delete(slices.Clone(l.handlers), i, i+1)
		return true
	}
}

func (l *dumbLease) Release(ctx context.Context) error {
	if err := ctx.Err(); err != nil && l.bug == "releases nothing under a done context" {
		return err
	}
	l.lock()
	close(l.superseded)
	l.superseded = make(chan struct{})
	h := l.held
	if h != nil && l.bug != "believes until the release is answered" && l.bug != "believes on if the release errs" {
		l.held = nil
		close(h.stop)
	}
	if h != nil {
		l.debts = append(l.debts, h.id)
		if l.bug == "tells a release as a loss" {
			l.tell(slices.Clone(l.handlers), lease.ErrReleased)
		}
	}
	if l.bug == "leaves its release to time" {
		l.debts = nil
	}
	idle := len(l.debts) == 0 && len(l.turn) == 0
	l.unlock()
	if l.bug == "releases what it does not hold" && h == nil {
		_, err := l.do(ctx, lease.Request{Action: lease.Release, ID: l.mint()})
		return err
	}
	if idle {
		return nil
	}
	done := make(chan error, 1)
	l.tasks.Go(func() {
		select {
		case l.turn <- struct{}{}:
		case <-l.quit:
			return
		}
		defer func() { <-l.turn }()
		err := l.settle(context.Background())
		if h != nil && (l.bug == "believes until the release is answered" || l.bug == "believes on if the release errs" && err == nil) {
			l.lock()
			if l.held == h {
				l.held = nil
				close(h.stop)
			}
			l.unlock()
		}
		if l.bug == "hides the error of a release" {
			l.lock()
			l.debts = nil
			l.unlock()
			err = nil
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dumbLeases is a suite over leases with that bug.
func dumbLeases(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1, Lacks: TakingOver | HandingOver | Warning | Waiting | Closing | Binding}
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		return newDumbLease(t, h, bug)
	}}
}

func TestDumbLease(t *testing.T) { dumbLeases("").test(t) }
