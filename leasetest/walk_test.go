package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/passon"
)

// In a random walk, calls of a lease, faults of its requests, and requests of other clients follow each
// other at random. Each walk has a lease and an authority of its own. These tests walk with sessions
// only: the simple lease of the other tests does not keep SPEC.md under so many faults.

// walkCount is the number of random walks of one test. They take less than a second.
const walkCount = 250

// A Session keeps the H clauses of SPEC.md in random walks.
func TestRandomWalks(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	for _, f := range walkAll(t, buggySessions(""), seed) {
		t.Errorf("SPEC %s: %s\nrandom walk %d:\n%s", f.clause, f.what, f.walk, f.history)
	}
}

// Random walks find bugs of sessions.
func TestRandomWalksFindBugs(t *testing.T) {
	for bug, clause := range walkBugs {
		t.Run(bug, func(t *testing.T) {
			for seed := range uint64(4) {
				if slices.ContainsFunc(walkAll(t, buggySessions(bug), seed), func(f finding) bool { return f.clause == clause }) {
					return
				}
			}
			t.Errorf("%d walks have found no violation of %s", 4*walkCount, clause)
		})
	}
}

// walkAll runs random walks with the leases of a suite, and returns at most three findings.
func walkAll(t *testing.T, s *suite, seed uint64) (found []finding) {
	s.options.Seed = seed
	synctest.Test(t, func(t *testing.T) {
		for i := range walkCount {
			if found = append(found, s.walk(t, i)...); len(found) > 2 {
				return
			}
		}
	})
	return found
}

// A finding is a violation that a random walk has found.
type finding struct {
	walk                  int
	clause, what, history string
}

// walk runs one random walk, with a lease and an authority of its own.
func (s *suite) walk(t testing.TB, n int) []finding {
	w := &walk{number: n, calm: make(chan struct{}), own: map[lease.ID]bool{}, retired: map[lease.ID]bool{}, granted: map[lease.ID]bool{}, released: map[lease.ID]bool{}, unseen: map[lease.ID]bool{}}
	r := &recorder{TB: t}
	r.run(func() {
		w.probe = s.probe(r, rule{name: fmt.Sprintf("walk/%d", n)})
		w.dice = rand.New(rand.NewPCG(s.options.Seed, uint64(n)))
		w.run()
	})
	for _, m := range r.messages {
		w.found = append(w.found, finding{n, "H", m, ""})
	}
	return w.found
}

// A walk is one random walk of one lease. It is also the authority of this lease.
type walk struct {
	*probe
	number int
	dice   *rand.Rand
	c      *contender
	direct lease.Authority // without faults
	length time.Duration   // the duration of the lease
	calm   chan struct{}   // closed when the faults end

	mu        sync.Mutex // guards dice and all fields below
	flying    []*flight
	own       map[lease.ID]bool // the IDs that the lease has proposed for itself
	retired   map[lease.ID]bool
	granted   map[lease.ID]bool
	released  map[lease.ID]bool // the IDs of releases that were granted or refused
	unseen    map[lease.ID]bool // the IDs in acquires and renewals that were carried out after they had returned
	others    []lease.ID        // the IDs of other clients, and of receivers of the lease
	terms     []*walkTerm
	contexts  []context.Context // of WhileHeld, not given back
	lateAt    time.Time         // when a request was last carried out after its context had ended
	unseenAt  time.Time         // when a request was last carried out after it had returned
	failedAt  time.Time         // when the outcome of a release was last unknown
	settledAt time.Time         // when an acquire last returned
	grantSent time.Time         // when the acquire that was granted last was sent
	brokenAt  time.Time
	calls     int // calls of the lease so far
	running   []*walkCall
	abandoned lease.ID // the ID in the request that was in flight when the last Acquire ended with its context
	found     []finding
}

// A flight is a request that has not returned to the lease.
type flight struct {
	lease.Request
	ctx context.Context
}

// A walkTerm is one incarnation of the lease.
type walkTerm struct {
	token    lease.Token
	began    time.Time
	released bool // by a call that began while CheckAlive was true
	excused  bool // a release may have ended it
	losses   int
}

// A walkCall is a call of a method of the lease.
type walkCall struct {
	clause, what string
	began        time.Time
	deadline     time.Time // when its context ends; zero if it does not
	superseded   bool      // a release began during the call
}

// violated records a violation of a clause.
func (w *walk) violated(clause, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.history.printf("== SPEC %s: %s", clause, what)
	if slices.ContainsFunc(w.found, func(f finding) bool { return f.clause == clause }) {
		return // one of each clause is enough
	}
	w.found = append(w.found, finding{w.number, clause, what, w.history.String()})
}

// draw returns a random number below n. The caller holds mu.
func (w *walk) draw(n int) int { return w.dice.IntN(n) }

// chance returns true with a probability of one in n. It locks mu.
func (w *walk) chance(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draw(n) == 0
}

// span returns a random time.
func (w *walk) span() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := []time.Duration{0, w.Unit / 20, w.Unit / 2, 2 * w.Unit, w.D / 4, w.D / 2, w.D, 2 * w.D}[w.draw(8)]
	return d + time.Duration(w.draw(1000))*w.Unit/1e4
}

// rest waits until d has passed, the faults end or ctx is done. It returns the error of ctx.
func (w *walk) rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.calm:
	case <-w.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

var errWalk = errors.New("leasetest: a fault of a random walk")

// Do implements lease.Authority. It applies a random fault to the request.
func (w *walk) Do(ctx context.Context, name string, req lease.Request) (res lease.Result, err error) {
	f := &flight{req, ctx}
	began := time.Now()
	w.mu.Lock()
	w.sends(f)
	kind, second := w.draw(10), w.draw(2) == 0
	unknown := []error{errWalk, lease.ErrConflict, lease.ErrCorrupt}[w.draw(3)]
	w.mu.Unlock()
	d := w.span()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.flying = slices.DeleteFunc(w.flying, func(o *flight) bool { return o == f })
		switch {
		case req.Action == lease.ActionRelease && (err == nil || lease.CodeOf(err).Refusal()):
			w.released[req.ID] = true
		case req.Action == lease.ActionRelease:
			w.failedAt = time.Now()
		case req.Action == lease.ActionAcquire:
			w.settledAt = time.Now()
			if err == nil {
				w.grantSent = began
			}
			if w.released[req.Proposed] && err != nil {
				w.failedAt = w.settledAt // it was to outrank a late acquire of a released ID
			}
			if err == nil && ctx.Err() == nil {
				w.retired[req.Proposed], w.granted[req.Proposed] = true, true
			}
		}
	}()
	send := func() (lease.Result, error) {
		if ctx.Err() != nil {
			w.mu.Lock()
			w.lateAt = time.Now()
			w.mu.Unlock()
			w.history.printf("== the late request is carried out: %s", requestText(req))
		}
		return w.direct.Do(context.WithoutCancel(ctx), name, req)
	}
	select {
	case <-w.calm:
		return send()
	default:
	}
	forever := 1000 * w.D
	always := context.WithoutCancel(ctx)
	switch kind {
	case 0: // the request is slow
		if err := w.rest(ctx, d); err != nil {
			return lease.Result{}, err
		}
		return send()
	case 1: // the answer is slow
		res, err := send()
		if err := w.rest(ctx, d); err != nil {
			return lease.Result{}, err
		}
		return res, err
	case 2: // it fails at once
		if second {
			_, _ = send()
		}
		return lease.Result{}, unknown
	case 3: // it is lost
		if second {
			_, _ = send()
		}
		if err := w.rest(ctx, forever); err != nil {
			return lease.Result{}, err
		}
		return lease.Result{}, unknown
	case 4: // it arrives later than its caller waits
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = w.rest(always, d)
			_, _ = send()
			w.mu.Lock()
			w.unseenAt = time.Now()
			w.unseen[req.ID], w.unseen[req.Proposed] = true, true
			w.mu.Unlock()
		}()
		w.Cleanup(func() { <-done })
		if second {
			return lease.Result{}, unknown
		}
		if err := w.rest(ctx, forever); err != nil {
			return lease.Result{}, err
		}
		return lease.Result{}, unknown
	case 5: // it ignores its context
		if second {
			_ = w.rest(always, d)
			return send()
		}
		res, err := send()
		_ = w.rest(always, d)
		return res, err
	}
	return send()
}

// sends checks a request that the lease sends, and remembers it. The caller holds mu.
func (w *walk) sends(f *flight) {
	same, waited := 0, 0
	for _, o := range w.flying {
		if o.Action == f.Action && (f.Action == lease.ActionAcquire || o.ID == f.ID) {
			same++
			if o.ctx.Err() == nil {
				waited++
			}
		}
	}
	switch f.Action {
	case lease.ActionAcquire:
		if waited > 0 {
			w.violated("H3", "an acquire is sent while another is in flight")
		}
		if w.retired[f.Proposed] && w.length != lease.Infinite {
			w.violated("H6", "%s is sent, and this ID was granted, abandoned or released before", requestText(f.Request))
		}
		w.own[f.Proposed] = true
	case lease.ActionRenew:
		if waited > 0 || same > 1 {
			w.violated("H11", "a renewal is sent while %d others are in flight, %d of them not canceled", same, waited)
		}
	case lease.ActionRelease:
		w.retired[f.ID] = true
	case lease.ActionChange:
		if !w.own[f.ID] { // a take-over
			w.own[f.Proposed] = true
		}
	}
	w.flying = append(w.flying, f)
}

// run runs the walk.
func (w *walk) run() {
	world := w.world()
	w.direct = world.direct
	world.direct = passon.Authority(w, w.direct)
	h := Holder{Owner: "walker", Duration: w.D}
	if w.can(CanBeInfinite) && w.chance(4) {
		h.Duration = lease.Infinite
	}
	h.TakeOver = w.can(CanTakeOver) && w.chance(4)
	w.length = h.Duration
	w.c = world.join(h)
	w.c.OnLost(w.notified)
	for range 6 + w.dice.IntN(10) {
		w.step()
		w.pass(w.span())
		w.look()
	}
	w.settle()
}

// step makes one random call, or one request of another client.
func (w *walk) step() {
	w.mu.Lock()
	kind := w.draw(14)
	w.mu.Unlock()
	switch {
	case kind < 5:
		w.begin("H2", "Acquire", w.acquire)
	case kind < 7:
		w.begin("H17", "Release", w.release)
	case kind == 7:
		if g, ok := w.c.Lease.(handOverer); ok && w.can(CanChange) {
			w.begin("H14", "HandOver", func(ctx context.Context, _ *walkCall) { w.handOver(ctx, g) })
		}
	case kind == 8:
		if l, ok := w.c.Lease.(lease.Waiter); ok {
			w.begin("H21", "Wait", func(ctx context.Context, _ *walkCall) {
				err := l.Wait(ctx)
				w.history.printf("walker: Wait: %v", err)
			})
		}
	case kind == 9:
		if _, ok := w.c.Lease.(contextBinder); ok {
			w.work()
		}
	case kind < 12:
		w.other()
	case kind == 12 && w.can(CanBreak):
		w.mu.Lock()
		w.brokenAt = time.Now()
		w.mu.Unlock()
		period := lease.Grace(w.span() / 2)
		_, err := w.direct.Do(w.ctx, w.name, lease.Request{Action: lease.ActionBreak, Period: period})
		w.history.printf("== a third party breaks it, period %v: %v", period, err)
	}
}

// begin starts a call of the lease, with a context that may end.
func (w *walk) begin(clause, what string, f func(context.Context, *walkCall)) {
	ctx, cancel := w.probe.ctx, context.CancelFunc(func() {})
	call := &walkCall{clause: clause, what: what, began: time.Now()}
	if w.chance(2) {
		d := w.span()
		ctx, cancel = context.WithTimeout(ctx, d)
		call.deadline = time.Now().Add(d)
		w.history.printf("walker: %s is called, and its context ends after %v", what, d)
	} else {
		w.history.printf("walker: %s is called", what)
	}
	w.mu.Lock()
	w.calls++
	w.running = append(w.running, call)
	w.mu.Unlock()
	go func() {
		defer cancel()
		f(ctx, call)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running = slices.DeleteFunc(w.running, func(c *walkCall) bool { return c == call })
		if late := time.Since(call.deadline); !call.deadline.IsZero() && late > 0 {
			w.violated(clause, "%s returned %v after its context had ended", what, late)
		}
	}()
}

// acquiring reports whether an Acquire is under way. The caller holds mu.
func (w *walk) acquiring() bool {
	return slices.ContainsFunc(w.running, func(c *walkCall) bool { return c.what == "Acquire" })
}

func (w *walk) acquire(ctx context.Context, call *walkCall) {
	tok, ok, err := w.c.tryAcquire(ctx)
	alive := w.c.CheckAlive()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned = lease.ID{}
	switch {
	case ok && err == nil:
		if !alive && !call.superseded && w.brokenAt.Before(w.grantSent) {
			w.violated("H1", "Acquire returns true, and CheckAlive is false")
		}
		t := w.term(tok)
		if t == nil {
			t = &walkTerm{token: tok, began: call.began, excused: call.superseded}
			w.terms = append(w.terms, t)
		}
		if t.began.After(call.began) {
			t.began = call.began
		}
	case !ok && ctx.Err() != nil && len(w.running) == 1:
		for _, f := range w.flying {
			if f.Action != lease.ActionAcquire {
				continue
			}
			w.retired[f.Proposed] = true
			if f.ctx.Err() == nil {
				w.abandoned = f.Proposed
			}
		}
	}
}

// term returns the incarnation with a token. The caller holds mu.
func (w *walk) term(tok lease.Token) *walkTerm {
	for _, t := range w.terms {
		if t.token == tok {
			return t
		}
	}
	return nil
}

// gives notes that a call gives the lease up.
func (w *walk) gives() (calls int, alone bool) {
	alive := w.c.CheckAlive()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.running {
		c.superseded = true
	}
	if n := len(w.terms); n > 0 && alive {
		w.terms[n-1].released = true
	}
	for _, t := range w.terms {
		t.excused = t.excused || t.released || w.acquiring()
	}
	return w.calls, len(w.running) == 1
}

func (w *walk) release(ctx context.Context, _ *walkCall) {
	began := time.Now()
	calls, alone := w.gives()
	err := w.c.Release(ctx)
	w.history.printf("walker: Release: %v", err)
	if err != nil {
		return
	}
	rec := w.record()
	w.mu.Lock()
	defer w.mu.Unlock()
	if alone && w.calls == calls && w.lateAt.Before(began) && w.mustBeFree(rec) {
		w.violated("H17", "Release returned nil, and the lease is %s", outcomeText(rec, nil))
	}
}

// mustBeFree reports whether a record shows that a release has left something locked. A late request
// can lock a finite lease again under an ID whose release was answered. A lease that was lost by a
// break may stay locked until the break ends. The caller holds mu.
func (w *walk) mustBeFree(rec lease.Record) bool {
	switch {
	case !rec.State.Locked() || !w.own[rec.ID]:
		return false
	case rec.State == lease.Breaking:
		return !w.granted[rec.ID] && !w.released[rec.ID] && w.term(rec.Token()) == nil
	}
	return w.length == lease.Infinite || !w.released[rec.ID] && !w.unseen[rec.ID]
}

func (w *walk) handOver(ctx context.Context, g handOverer) {
	to := w.id()
	if ctx.Err() == nil {
		w.gives()
	}
	w.mu.Lock()
	w.others = append(w.others, to)
	w.mu.Unlock()
	err := g.HandOver(ctx, to)
	w.history.printf("walker: HandOver: %v", err)
}

// work uses a context of WhileHeld for a while.
func (w *walk) work() {
	ctx, giveBack := w.c.Lease.(contextBinder).WhileHeld(w.probe.ctx)
	w.mu.Lock()
	w.contexts = append(w.contexts, ctx)
	w.mu.Unlock()
	d := w.span()
	w.history.printf("walker: WhileHeld: %v, for %v", ctx.Err(), d)
	go func() {
		_ = w.rest(context.Background(), d)
		w.mu.Lock()
		w.contexts = slices.DeleteFunc(w.contexts, func(o context.Context) bool { return o == ctx })
		w.mu.Unlock()
		giveBack()
		w.history.printf("walker: a context of WhileHeld is given back")
	}()
}

// other lets another client acquire the lease, or give it up.
func (w *walk) other() {
	if w.chance(2) {
		id, owner := w.id(), "other"
		if w.chance(2) {
			owner = "walker"
		}
		w.mu.Lock()
		w.others = append(w.others, id)
		w.mu.Unlock()
		res, err := w.direct.Do(w.ctx, w.name, lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: owner, Duration: w.D})
		w.history.printf("== another client acquires: %s", answerText(res, err))
		return
	}
	w.endOthers()
}

// endOthers ends the leases of the other clients.
func (w *walk) endOthers() {
	w.mu.Lock()
	others := slices.Clone(w.others)
	w.mu.Unlock()
	for _, id := range others {
		if _, err := w.direct.Do(w.ctx, w.name, lease.Request{Action: lease.ActionRelease, ID: id}); err == nil {
			w.history.printf("== another client releases")
		}
	}
}

// record returns the current record.
func (w *walk) record() lease.Record {
	res, err := lease.Inspect(w.ctx, w.direct, w.name)
	if err != nil {
		w.history.printf("== a read: %v", err)
	}
	return res.Record
}

// told is a handler of OnLost.
func (w *walk) notified(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := (*lease.LostError)(nil)
	if !errors.As(err, &lost) || !w.can(hasToken) {
		return
	}
	t := w.term(lost.Token)
	if t == nil { // the Acquire has returned, and its goroutine has not noted that yet
		t = &walkTerm{token: lost.Token, began: time.Now()}
		w.terms = append(w.terms, t)
	}
	if t.losses++; t.losses > 1 {
		w.violated("H15", "the loss of token %s is reported again", lost.Token)
	}
	if t.released {
		w.violated("H15", "a loss is reported of token %s, which was released while CheckAlive was true", lost.Token)
	}
}

// look checks what is true at all times.
func (w *walk) look() {
	alive, rec := w.c.CheckAlive(), w.record()
	w.mu.Lock()
	defer w.mu.Unlock()
	if alive {
		n := len(w.terms)
		mayBeBroken := n == 0 || !w.brokenAt.Before(w.terms[n-1].began) || !w.brokenAt.Before(w.grantSent)
		if !mayBeBroken && !(rec.State.Locked() && w.own[rec.ID]) {
			w.violated("H9", "CheckAlive is true, and the lease is %s", outcomeText(rec, nil))
		}
		return
	}
	if n := len(w.terms); n > 0 && !w.acquiring() && w.can(hasToken) {
		if last := w.terms[n-1]; last.losses == 0 && !last.excused {
			w.violated("H15", "CheckAlive is false, and the loss of token %s was not reported", last.token)
		}
	}
	for _, ctx := range w.contexts {
		if ctx.Err() == nil && !w.acquiring() {
			w.violated("H20", "CheckAlive is false, and a context of WhileHeld is not done")
		}
	}
}

// settle ends the faults and checks what the lease does then.
func (w *walk) settle() {
	w.history.printf("== the faults end")
	close(w.calm)
	w.pass(w.D / 2)
	w.look()
	alive, rec := w.c.CheckAlive(), w.record()
	w.mu.Lock()
	undone := !w.abandoned.IsZero() && len(w.running) == 0 && w.unseenAt.Before(w.settledAt) && w.failedAt.Before(w.settledAt)
	if undone && !alive && rec.State.Locked() && rec.ID == w.abandoned {
		w.violated("H3", "the last Acquire ended with its context, and the lease is still %s", outcomeText(rec, nil))
	}
	w.mu.Unlock()
	w.endOthers()
	w.pass(w.D * 5 / 4)
	w.mu.Lock()
	for _, c := range w.running {
		w.violated(c.clause, "%s has not returned %v after the faults ended", c.what, w.D*7/4)
	}
	w.mu.Unlock()
	w.look()
	w.gives()
	if err := w.c.Release(w.probe.ctx); err != nil {
		w.history.printf("walker: Release: %v", err)
		err = w.c.Release(w.probe.ctx)
		if err != nil {
			w.mu.Lock()
			w.violated("H17", "a second Release after the faults returned %v", err)
			w.mu.Unlock()
		}
	}
	w.pass(w.Unit)
	if rec := w.record(); rec.State.Locked() {
		w.mu.Lock()
		if w.mustBeFree(rec) {
			w.violated("H17", "Release returned nil after the faults, and the lease is %s", outcomeText(rec, nil))
		}
		w.mu.Unlock()
		w.pass(w.D * 5 / 4) // a break
	}
	_, ok, err := w.c.tryAcquire(w.probe.ctx)
	if rec := w.record(); !ok && !(rec.State.Locked() && !w.own[rec.ID]) {
		w.mu.Lock()
		w.violated("H1", "Acquire of a free lease after the faults: %v, %v", ok, err)
		w.mu.Unlock()
		return
	}
	for range 9 {
		w.pass(w.D / 6)
		if ok && !w.c.CheckAlive() {
			w.mu.Lock()
			w.violated("H11", "the lease was lost although the authority answers")
			w.mu.Unlock()
			return
		}
	}
}

// walkBugs are bugs of planted_session_test.go, and the clauses that they violate in random walks.
var walkBugs = map[string]string{
	"keeps what it took over from a break":  "H1",
	"takes over first and asks then":        "H6",
	"forgets a hand-over without an answer": "H15",
	"keeps what it could not hand over":     "H17",
	"releases what it has acquired only":    "H17",
	"a bound context outlives a hand-over":  "H20",
}
