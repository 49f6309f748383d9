package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/tasks"
)

// ErrTooLate means that the Gate did not send a request. When it was the turn of the request, the server
// could no longer have answered it before the deadline of its context.
var ErrTooLate = errors.New("too late to be answered in time")

// A Gate protects the leases of a process while the server of a store is overloaded. The Gate decides which
// requests to the server go first, and which are refused:
//
//   - The Gate limits the number of running requests, and lowers this limit while the server is silent.
//   - If the server answers no request for about a quarter of a RequestTimeout, the other requests wait until
//     it answers again. Meanwhile the Gate sends one request in each such time.
//   - Urgent requests overtake all others, and a quarter of the limit is reserved for them. An eighth is
//     reserved for requests that are not urgent, as long as each held lease is renewed before half of its
//     time is over. So a list is answered even while the server is a little too slow for all renewals.
//   - A request that could not be answered before its deadline is not sent.
//   - An acquire is refused while the server is too slow to renew one more lease.
//
// All requests of the store must pass through the Gate. A Gate is safe for concurrent use. A nil *Gate lets
// all requests through.
type Gate struct {
	mu   sync.Mutex
	flow flow
	room room

	behind int       // the number of Batchers whose waiting renewals fill a request
	rings  time.Time // when a timer will call ring; zero if there is none
}

// NewGate returns a Gate that allows at most the given number of requests to run at the same time. NewGate
// panics if this number is not positive.
func NewGate(most int) *Gate {
	if most <= 0 {
		panic("engine: NewGate: the number of requests must be positive")
	}
	return &Gate{flow: newFlow(most)}
}

// Spare returns how many of the requests that [NewGate] allows are reserved for urgent ones.
func (g *Gate) Spare() int { return spare(g.flow.most) }

// A Request tells a [Gate] what is about to be sent to the server, so that the Gate can decide when. The zero
// Request is not urgent.
type Request struct {
	// Urgent lets the request overtake all requests that are not urgent. Renewals should be urgent, because a
	// late renewal loses a lease. Releases should be urgent, too, because a released lease needs no more
	// renewals.
	Urgent bool

	// Name is the name of the lease to renew. The Gate sends the waiting renewals in the order in which their
	// leases end, as far as it knows from [Gate.Note]. Requests without a Name go in the order of their
	// deadlines.
	Name string

	// Renewals is the number of leases that the request renews. From this number, the Gate computes how many
	// leases the server can renew each second.
	Renewals int

	// The field Others is the number of requests of other kinds that the request contains. If Renewals and
	// Others are both zero, Others counts as one.
	Others int

	// Partial says that the request could have contained more renewals, but no more of them were waiting. The
	// Gate does not conclude from such a request how many renewals the server can do.
	Partial bool

	patience time.Duration // how long the caller waits for an answer; 0: until the deadline of the context
}

// This method returns the description of a batch: one request to the server that does the work of n requests
// like r. The last parameter is the maximum size of a batch.
func (r Request) times(n, most int) Request {
	r.Renewals, r.Others, r.Partial = n*r.Renewals, n*r.Others, r.Renewals > 0 && n < most
	return r
}

// Enter blocks until the request may be sent. Then the caller must send the request, and call [Pass.Leave]
// when the request has ended. If ctx is the context of a renewal by a Session, the time limit of the renewal
// begins only when Enter returns.
//
// If ctx ends first, or if the request could no longer be answered in time, Enter returns an error that wraps
// [lease.ErrUnsent] and either ctx.Err() or [ErrTooLate]. The request must then not be sent. If the server is
// probably too busy with the renewals of the held leases, the error is a [*FullError].
func (g *Gate) Enter(ctx context.Context, r Request) (Pass, error) {
	if err := ctx.Err(); err != nil {
		return Pass{}, &unsentError{err}
	}
	if g == nil {
		return Pass{}, nil
	}
	defer growStack(0)
	now := time.Now()
	if r.Urgent {
		if deadline, ok := ctx.Deadline(); ok && r.patience == 0 {
			r.patience = deadline.Sub(now)
		}
		tasks.Wait(ctx)
	}
	w := &waiter{urgent: r.Urgent, turn: make(chan bool, 1)}
	w.needed = g.needed(ctx, r.Name)
	w.deadline, _ = ctx.Deadline()
	g.mu.Lock()
	w.calm = g.room.half(r.Name)
	if r.Urgent && r.patience > 0 {
		g.flow.follow(r.patience)
	}
	if g.flow.arrive(now, w) {
		g.mu.Unlock()
		tasks.Sent(ctx)
		return Pass{g, r, ctx, now, w.probe}, nil
	}
	g.wake(now)
	g.mu.Unlock()
	var err error
	select {
	case sent := <-w.turn:
		if now = time.Now(); sent {
			tasks.Sent(ctx)
			return Pass{g, r, ctx, now, w.probe}, nil
		}
		err = ErrTooLate
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != ErrTooLate && !g.flow.giveUp(w) && <-w.turn { // the turn of the request came at the same moment
		g.takeBack(w.urgent)
	}
	return Pass{}, g.unsent(r, err)
}

// wake arranges that the waiting requests are looked at when the next probe may be sent. The caller holds the
// lock.
func (g *Gate) wake(now time.Time) {
	left := g.flow.untilProbe(now)
	if due := now.Add(left); left > 0 && g.flow.waiting() && (g.rings.IsZero() || due.Before(g.rings)) {
		g.rings = due
		time.AfterFunc(left, g.ring)
	}
}

// ring sends the next probe if the server is still silent.
func (g *Gate) ring() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rings = time.Time{}
	now := time.Now()
	g.flow.pass(now)
	g.wake(now)
}

// The method takeBack tells the flow that a request was not sent after all. The caller holds the lock.
func (g *Gate) takeBack(urgent bool) {
	now := time.Now()
	g.flow.takeBack(now, urgent)
	g.flow.pass(now)
	g.wake(now)
}

// The method silent reports whether the Gate sends only probes.
func (g *Gate) silent() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flow.silent(time.Now())
}

// The method unsent returns the error for a request that the Gate did not send. The parameter err is the
// reason. The caller holds the lock.
func (g *Gate) unsent(r Request, err error) error {
	if now := time.Now(); g.flow.silent(now) {
		err = fmt.Errorf("the server has not answered for %v: %w", now.Sub(g.flow.unanswered).Round(time.Millisecond), err)
	}
	if r.Urgent || !g.room.nearlyFull() {
		return &unsentError{err}
	}
	return g.room.full(0, err)
}

// growStack makes the stack of a new goroutine large enough for a client library. Growing the stack here,
// while it is shallow, is cheap. If the stack grew in the client library, the runtime would have to copy many
// frames, and it would do so twice. Thousands of requests may wait, so the stack of a waiting request stays
// small.
//
//go:noinline
func growStack(i int) byte {
	var frame [5 << 10]byte
	return frame[i]
}

// A Pass is the permission of a [Gate] to send a request.
type Pass struct {
	gate    *Gate
	request Request
	ctx     context.Context // of the caller of Enter
	sent    time.Time
	probe   bool // the server is silent, so that the request will probably fail
}

// Renewed returns a Pass that counts n renewed leases instead of [Request.Renewals]. Use this if some
// renewals of the request conflicted, because they will be sent again and must not count twice.
func (p Pass) Renewed(n int) Pass {
	p.request.Renewals = n
	return p
}

// Leave tells the Gate that the request has ended. The parameter answered must be true if the server has
// answered the request, with a result or with an error. Leave does nothing for the zero Pass.
func (p Pass) Leave(answered bool) {
	if p.gate == nil {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	now := time.Now()
	if answered {
		p.gate.room.answered(now, p.request.Renewals, p.request.Others, (p.gate.behind > 0 || p.gate.flow.waiting()) && !p.request.Partial)
	}
	early := !answered && p.ctx.Err() == nil // otherwise the request has failed because its caller did not wait for longer
	p.gate.flow.leave(now, p.sent, p.request.Urgent, answered, early)
	p.gate.wake(now)
}

// abandon tells the Gate that the request was not sent after all.
func (p Pass) abandon() {
	if p.gate == nil {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.takeBack(p.request.Urgent)
}

// fallBehind adds n to the number of Batchers whose waiting renewals fill a request.
func (g *Gate) fallBehind(n int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind += n
}

// needed returns the time by which a request must be answered. The renewal of a held lease must be answered
// before the end of the lease. Any other request must be answered before the deadline of ctx. If ctx has no
// deadline, the result is the current time.
func (g *Gate) needed(ctx context.Context, name string) time.Time {
	if g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		if h, ok := g.room.held[name]; ok {
			return h.until
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		return deadline
	}
	return time.Now()
}

func (g *Gate) late(now, deadline time.Time) bool {
	if g == nil {
		return now.After(deadline)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flow.late(now, deadline)
}

// Admit returns a [*FullError] if the server can probably not renew one more lease, of the given duration,
// besides those that the store holds. Call Admit before a lease is granted, but not before a renewal.
func (g *Gate) Admit(name string, d time.Duration) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.room.admit(time.Now(), name, d)
}

// Note must be called when the store has written a record under a name, because the Gate must know which
// leases this process holds. If another client has replaced the record, pass the zero Record.
func (g *Gate) Note(name string, r lease.Record) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room.note(time.Now(), name, r)
}

// A FullError means that a request was refused, because the server is busy with the renewals of the leases
// that this process holds. The request was an acquire, or another request that is not urgent, such as a read.
// A FullError wraps [lease.ErrUnsent], because the request was certainly not carried out. If the request
// waited in vain, the FullError also wraps [ErrTooLate] or the error of the context.
type FullError struct {
	Asked  float64 // how many renewals a second the held leases need, together with the one that was refused
	Does   float64 // how many requests a second the server has carried out lately, where each renewal counts as one
	Leases int     // how many leases the store holds
	err    error
}

// Error returns a text that compares two numbers: how many renewals are needed per second, and how many
// renewals the server can do per second.
func (e *FullError) Error() string {
	text := fmt.Sprintf("%d leases are held, and the store is asked for %.0f renewals a second and does %.0f: use longer Durations, or another server", e.Leases, e.Asked, e.Does)
	if e.err != nil {
		return e.err.Error() + "; not sent, because renewals go first: " + text
	}
	return "no room for another lease: " + text
}

// Unwrap returns [lease.ErrUnsent]. If the request has waited, Unwrap also returns the reason why the request
// was not sent.
func (e *FullError) Unwrap() []error { return unsent(e.err) }

type unsentError struct{ err error }

func (e *unsentError) Error() string   { return e.err.Error() }
func (e *unsentError) Unwrap() []error { return unsent(e.err) }

func unsent(err error) []error {
	if err == nil {
		return []error{lease.ErrUnsent}
	}
	return []error{lease.ErrUnsent, err}
}
