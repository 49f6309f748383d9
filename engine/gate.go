package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// ErrTooLate is wrapped by the error of a request that has waited so long that the server could not have answered
// it before the deadline of its context.
var ErrTooLate = errors.New("too late to be answered in time")

// A Gate stands between a store and its server. All requests of the store pass through it:
//
//   - It limits how many requests are under way, and sends fewer of them to a server that is silent.
//   - Requests that are urgent overtake all others. A quarter of the limit is reserved for them, and an eighth for
//     the others as long as each lease that is held is renewed before half of its time is over. So a list is
//     answered even while the server is a little too slow for all renewals.
//   - It does not send a request that could not be answered before its deadline.
//   - It refuses another lease while the server cannot renew more than those that the store holds.
//
// A Gate is safe for use by several goroutines at once. A nil *Gate lets all requests through.
type Gate struct {
	mu   sync.Mutex
	flow flow
	room room
}

// NewGate returns a Gate that lets at most the given number of requests be under way at a time. It panics if
// that number is not positive.
func NewGate(most int) *Gate {
	if most <= 0 {
		panic("engine: NewGate: the number of requests must be positive")
	}
	return &Gate{flow: newFlow(most)}
}

// Spare returns how many of the requests under way can only be urgent ones while the server answers.
func (g *Gate) Spare() int { return spare(g.flow.most) }

// A Request says how a Gate treats a request.
type Request struct {
	// Urgent lets the request overtake all that are not urgent. Renewals are urgent because a lease is lost if
	// they are late, and so are releases, after which there is less to renew.
	Urgent bool

	// Name is that of the lease to renew. Of the renewals that wait, the one whose lease ends first, as far as
	// Note knows, goes first. Requests without a name go in the order of their deadlines.
	Name string

	// Renewals is the number of leases that the request renews. The Gate counts how many the server renews a second.
	Renewals int

	// Others is the number of requests of another kind that are sent in it. If Renewals is zero, too, it is one.
	Others int

	// Partial says that the request could have renewed more leases, if more had waited. While there are such
	// requests, what the server does is not the most that it can do.
	Partial bool
}

// times returns the request that n of them make together, of which at most the given number fit into one.
func (r Request) times(n, most int) Request {
	r.Renewals, r.Others, r.Partial = n*r.Renewals, n*r.Others, r.Renewals > 0 && n < most
	return r
}

// Enter blocks until the request may be sent. The caller must then send it, and call [Pass.Leave] at its end.
// If ctx ends before the request may be sent, or if it is too late for it, Enter returns an error, and the
// request must not be sent. The error wraps [lease.ErrUnsent], and ctx.Err() or [ErrTooLate]. It is a [*FullError] if
// the request is not urgent, and the renewals of the leases that are held are at least half of what fits, as far as
// that is known.
func (g *Gate) Enter(ctx context.Context, r Request) (Pass, error) {
	if err := ctx.Err(); err != nil {
		return Pass{}, &unsentError{err}
	}
	if g == nil {
		return Pass{}, nil
	}
	defer growStack(0)
	w := &waiter{urgent: r.Urgent}
	w.needed = g.needed(ctx, r.Name)
	w.deadline, _ = ctx.Deadline()
	now := time.Now()
	g.mu.Lock()
	w.calm = g.room.half(r.Name)
	if g.flow.arrive(now, w) {
		g.mu.Unlock()
		return Pass{g, r, now}, nil
	}
	w.turn = make(chan bool, 1)
	g.mu.Unlock()
	var err error
	select {
	case sent := <-w.turn:
		if now = time.Now(); sent {
			return Pass{g, r, now}, nil
		}
		err = ErrTooLate
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != ErrTooLate && !g.flow.giveUp(w) && <-w.turn { // its turn came at the same moment
		g.flow.over(w.urgent)
		g.flow.pass(time.Now())
	}
	return Pass{}, g.unsent(r, err)
}

// unsent returns the error of a request that was not sent because of err. The caller holds the lock.
func (g *Gate) unsent(r Request, err error) error {
	if r.Urgent || !g.room.nearlyFull() {
		return &unsentError{err}
	}
	return g.room.full(0, err)
}

// growStack makes the stack of a new goroutine large enough for a client library. A stack that grows in the midst
// of it costs more, because the runtime then copies many frames, twice. A request that waits has not grown yet,
// because thousands may wait.
//
//go:noinline
func growStack(i int) byte {
	var frame [5 << 10]byte
	return frame[i]
}

// A Pass is a request that a Gate has let through.
type Pass struct {
	gate    *Gate
	request Request
	sent    time.Time
}

// Renewed returns p for a request that has renewed n leases, if these are fewer than it was to renew. A renewal
// that conflicts with an earlier one, whose answer was lost, is repeated, and must not count twice.
func (p Pass) Renewed(n int) Pass {
	p.request.Renewals = n
	return p
}

// Leave says that the request is no longer under way. The parameter answered says whether the server has
// answered it, with a result or with an error. The zero Pass may leave, too.
func (p Pass) Leave(answered bool) {
	if p.gate == nil {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	now := time.Now()
	if answered {
		p.gate.room.answered(now, p.request.Renewals, p.request.Others, p.gate.flow.waiting() && !p.request.Partial)
	}
	p.gate.flow.leave(now, p.sent, p.request.Urgent, answered)
}

// abandon says that the request was not sent after all.
func (p Pass) abandon() {
	if p.gate == nil {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.flow.over(p.request.Urgent)
	p.gate.flow.pass(time.Now())
}

// needed returns when a request is needed: before the lease ends, if the store holds it, or before ctx ends.
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

// late reports whether a request that is sent now would be answered after its deadline.
func (g *Gate) late(now, deadline time.Time) bool {
	if g == nil {
		return now.After(deadline)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flow.late(now, deadline)
}

// Admit returns a [*FullError] if the server cannot be expected to renew one more lease, of the given duration,
// beside those that the store holds. It must be called before a lease is granted, and not for a renewal.
func (g *Gate) Admit(name string, d time.Duration) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.room.admit(time.Now(), name, d)
}

// Note records what the store has written under a name: a lease that it holds, or the end of one. A record
// that another client has written is the zero Record.
func (g *Gate) Note(name string, r lease.Record) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room.note(time.Now(), name, r)
}

// A FullError reports that a lease was not acquired, or a record not read, because the renewals of the leases that
// the store holds go first. It wraps [lease.ErrUnsent], because what was asked for was certainly not done, and, if the
// request has waited in vain, ErrTooLate or the error of the context.
type FullError struct {
	Asked  float64 // renewals a second of the leases that are held, and of the one that is refused
	Does   float64 // requests a second that the server did lately, where each renewal counts as one
	Leases int     // held
	err    error
}

// Error says both figures.
func (e *FullError) Error() string {
	text := fmt.Sprintf("%d leases are held, and the store is asked for %.0f renewals a second and does %.0f: use longer Durations, or another server", e.Leases, e.Asked, e.Does)
	if e.err != nil {
		return e.err.Error() + "; not sent, because renewals go first: " + text
	}
	return "no room for another lease: " + text
}

// Unwrap returns lease.ErrUnsent, and the reason if the request has waited in vain.
func (e *FullError) Unwrap() []error { return unsent(e.err) }

// An unsentError is the error of any other request that was not sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string   { return e.err.Error() }
func (e *unsentError) Unwrap() []error { return unsent(e.err) }

func unsent(err error) []error {
	if err == nil {
		return []error{lease.ErrUnsent}
	}
	return []error{lease.ErrUnsent, err}
}
