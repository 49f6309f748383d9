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
)

// A plainLease is a holder in its simplest form, written without the code of package session: one
// loop for each incarnation, and one lock. Each bug of a plainLease is a bug that a real lease
// could have, or had.
type plainLease struct {
	Holder
	bug   string
	clock lease.Clock
	quit  chan struct{} // closed at the end of the test
	life  context.Context
	tasks sync.WaitGroup

	mu              chan struct{} // a lock that a test can end
	turn            chan struct{} // of acquires, and of what undoes them
	held            *plainHolding
	handlers        []*plainHandler
	pendingReleases []lease.ID // to be released
	mayArrive       []lease.ID // of infinite acquires without an answer, which may be carried out later
	undone          []lease.ID // released after an acquire of unknown outcome, which may still arrive
	lastLoss        error
	unreported      error         // the last loss, if neither a grant nor a release has followed it
	broke           bool          // the last incarnation was breaking
	superseded      chan struct{} // closed by Release
	next            atomic.Uint64
	released        atomic.Uint64 // how often
}

type plainHolding struct {
	id       lease.ID
	token    lease.Token
	until    time.Time
	breaking bool
	renewing atomic.Bool // a renewal is under way
	stop     chan struct{}
}

type plainHandler struct {
	f    func(error)
	from time.Time // is called for losses after it
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func newPlainLease(t testing.TB, h Holder, bug string) *plainLease {
	if bug != "takes any holder" {
		if err := checkHolder(h); err != nil {
			t.Fatal(err)
		}
	}
	l := &plainLease{Holder: h, bug: bug, clock: h.Clock, quit: make(chan struct{}),
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

// checkHolder returns an error if a plainLease does not support the holder h.
func checkHolder(h Holder) error {
	switch {
	case lease.CheckName(h.Name) != nil:
		return lease.CheckName(h.Name)
	case h.Owner != "" && lease.CheckOwner(h.Owner) != nil:
		return lease.CheckOwner(h.Owner)
	case h.Duration < time.Millisecond:
		return fmt.Errorf("duration %v: must be at least a millisecond", h.Duration)
	}
	return nil
}

func (l *plainLease) lock() {
	select {
	case l.mu <- struct{}{}:
	case <-l.quit:
		runtime.Goexit()
	}
}

func (l *plainLease) unlock() { <-l.mu }

// do makes a request with a bound of its own.
func (l *plainLease) do(ctx context.Context, req lease.Request) (lease.Result, error) {
	bound := l.timeout()
	if req.Action == lease.ActionRenew && l.bug == "gives a renewal all the time that is left" {
		bound = l.Duration
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	return l.Authority.Do(ctx, l.Name, req)
}

func (l *plainLease) timeout() time.Duration { return min(l.Duration, time.Minute) / 6 }

// jitter is a part of d, the same in every run.
func (l *plainLease) jitter(d time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(fmt.Sprint(l.Name, l.Owner, l.next.Add(1))))
	return d * time.Duration(sum[0]) / 256
}

// mint makes an ID.
func (l *plainLease) newID() (id lease.ID) {
	seed := fmt.Sprintf("%p %d", l, l.next.Add(1))
	switch l.bug {
	case "its ID is its owner":
		seed = l.Owner
	case "has another ID after a release only":
		seed = fmt.Sprintf("%p %d", l, l.released.Load())
	case "its ID is its own forever":
		seed = fmt.Sprintf("%p", l)
	}
	sum := sha256.Sum256([]byte(seed))
	binary.BigEndian.PutUint64(id[:8], binary.BigEndian.Uint64(sum[:8]))
	copy(id[8:], sum[8:16])
	return id
}

// believe is the end of what may be believed of a grant.
func (l *plainLease) believe(sent time.Time, sure time.Duration) time.Time {
	d := min(sure, l.Duration)
	switch {
	case l.bug == "believes what it asked for":
		d = l.Duration
	case l.bug == "believes what the authority says":
		d = sure
	case l.bug == "believes an infinite lease forever" && l.Duration == lease.Infinite:
		d = lease.Infinite
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

func (l *plainLease) alive(h *plainHolding) bool {
	if l.bug == "CheckAlive is a flag" {
		return true
	}
	return l.clock.Now().Before(h.until)
}

func (l *plainLease) CheckAlive() bool {
	if l.bug == "CheckAlive asks the authority" {
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout())
		defer cancel()
		res, err := lease.Inspect(ctx, l.Authority, l.Name)
		return err == nil && l.held != nil && res.Record.ID == l.held.id && res.Record.State.Locked()
	}
	l.lock()
	defer l.unlock()
	if l.bug == "CheckAlive stays true after a loss" && l.held == nil && l.lastLoss != nil {
		return true
	}
	return l.held != nil && l.alive(l.held)
}

// plainLeases is a suite over leases with that bug.
func plainLeases(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1, Can: Everything &^ CanTakeOver}
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		return newPlainLease(t, h, bug)
	}}
}

func TestPlainLease(t *testing.T) { plainLeases("").test(t) }

func (l *plainLease) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := l.AcquireWithToken(ctx)
	return ok, err
}

func (l *plainLease) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	if l.bug == "does not look at a done context" && ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	l.lock()
	if h := l.held; h != nil && l.alive(h) && l.bug != "asks again while holding" {
		defer l.unlock()
		for n := 0; n < 200 && h.renewing.Load() && l.bug == "an acquire waits for the renewal under way"; n++ {
			_ = wait(ctx, l.Duration/100)
		}
		return h.token, true, nil
	}
	h, superseded := l.held, l.superseded
	l.unlock()
	if h != nil && !l.alive(h) && l.bug != "an acquire at the end hides the loss" {
		l.lose(h, h.over())
	}
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

func (l *plainLease) attempt(ctx context.Context, superseded chan struct{}, free func()) (lease.Token, bool, error) {
	id := l.newID()
	type answer struct {
		res  lease.Result
		sent time.Time
		err  error
	}
	answers := make(chan answer, 1)
	request := context.WithoutCancel(ctx)
	if l.bug == "waits for its request to look at the context" {
		request = ctx
	}
	l.tasks.Go(func() {
		sent := l.clock.Now()
		res, err := l.do(request, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: l.Owner, Duration: l.Duration})
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
	if l.bug == "waits for the authority, not for its context" || l.bug == "waits for its request to look at the context" {
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
	if r := a.res.Record; a.err == nil && (r.State != lease.Leased || r.ID != id) && l.bug != "believes a grant whatever it shows" {
		a.err = errors.New("the grant shows another lease")
		if l.bug == "forgets a grant that shows another lease" {
			free()
			return "", false, a.err
		}
	}
	switch code := lease.CodeOf(a.err); {
	case a.err == nil:
		now, until := l.clock.Now(), l.believe(a.sent, a.res.MinRemaining)
		if over := !now.Before(until); over && l.bug != "believes what is over" && !(l.bug == "believes what is over at this instant" && now.Equal(until)) {
			answers <- a
			undo()
			if l.bug == "tells a late grant as a loss" {
				l.notify(slices.Clone(l.handlers), lease.ErrExpired)
			}
			return "", false, lease.ErrExpired
		}
		tok := l.begin(ctx, id, a.res, a.sent)
		free()
		return tok, true, nil
	case code == lease.ErrHeldByOther, code == lease.ErrBreaking, code != 0 && l.bug == "takes every refusal for held":
		free()
		switch l.bug {
		case "takes held for an error":
			return "", false, a.err
		case "takes held for granted":
			return l.begin(ctx, id, a.res, a.sent), true, nil
		case "tells a failed acquire as a loss":
			l.notify(slices.Clone(l.handlers), a.err)
		case "waits for its turn":
			<-l.clock.After(l.timeout())
		case "waits for its own duration":
			if granted := a.res.Record.Until.Add(-a.res.Record.Duration); a.res.Now.Sub(granted) > l.Duration {
				_, _ = l.do(ctx, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
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

// undo releases an ID of an acquire that did not make the lease held. If that acquire may still
// arrive later, and its lease would be infinite, undo acquires and releases the ID again.
func (l *plainLease) undo(ctx context.Context, id lease.ID, inDoubt bool) {
	if l.bug != "undoes under the caller's context" {
		ctx = context.WithoutCancel(ctx)
	}
	l.lock()
	l.undone = append(l.undone, id)
	if inDoubt && l.Duration == lease.Infinite && l.bug != "releases an infinite orphan once" {
		l.mayArrive = append(l.mayArrive, id)
	}
	l.unlock()
	_, err := l.do(ctx, lease.Request{Action: lease.ActionRelease, ID: id})
	if lease.CodeOf(err) == lease.ErrIDMismatch && inDoubt && l.Duration == lease.Infinite && l.bug != "leaves an infinite orphan" {
		if _, err = l.do(ctx, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: l.Owner, Duration: l.Duration}); err == nil {
			_, err = l.do(ctx, lease.Request{Action: lease.ActionRelease, ID: id})
		}
	}
	if err != nil && !lease.CodeOf(err).Refusal() {
		l.lock()
		l.pendingReleases = append(l.pendingReleases, id)
		l.unlock()
	}
}

// settle releases the IDs that must be released, in its turn.
func (l *plainLease) settle(ctx context.Context) error {
	l.lock()
	pendingReleases := l.pendingReleases
	l.unlock()
	for _, id := range pendingReleases {
		req := lease.Request{Action: lease.ActionRelease, ID: id}
		if l.bug == "breaks what it releases" {
			req = lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}
		}
		res, err := l.do(ctx, req)
		l.lock()
		shown := slices.Contains(l.undone, res.Record.ID) && res.Record.State.Locked() && res.Record.ID != id
		l.unlock()
		if err != nil && shown {
			_, err = l.do(ctx, lease.Request{Action: lease.ActionRelease, ID: res.Record.ID})
		}
		if err != nil && !lease.CodeOf(err).Refusal() {
			return err
		}
		l.lock()
		l.pendingReleases = slices.DeleteFunc(l.pendingReleases, func(d lease.ID) bool { return d == id })
		l.unlock()
	}
	return nil
}
