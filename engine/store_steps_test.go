package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A step waits, and then a process sends a request, whose answer must have the code. A field that is zero is not checked.
type step struct {
	wait time.Duration
	by   int // the process
	req  lease.Request
	code lease.Code
	left time.Duration // what is left at most
	sure time.Duration // what is left at least, less the drift of the clocks
	sent int           // how many exchanges with the engine it takes
	id   lease.ID      // of the record in the answer
}

const none = -1 // as the value of sure

// isNear reports whether a lower bound allows for the drift of two clocks over some seconds, and for no more.
func isNear(certain, most time.Duration) bool {
	return certain < most && certain > most-40*time.Millisecond
}

// Each row is a sequence of requests by three processes. SPEC A2, A4, M6.
func TestSteps(t *testing.T) {
	const a, b, c = 0, 1, 2 // processes, each with a Store of its own at one engine
	const s, held = time.Second, lease.ErrHeldByOther
	read, write := lease.Request{Action: lease.ActionRead}, lease.Request{Action: lease.ActionWrite}
	for what, steps := range map[string][]step{
		"when a Store reads a lease for the first time, it starts the countdown": {
			{by: a, req: acquire(idA, 10*s)},
			{by: b, req: acquire(idB, s), code: held, left: 10 * s, sure: none},
			{by: c, req: acquire(idB, s), code: held, left: 10 * s, wait: 8 * s}, // a newcomer must wait for the whole duration
			{by: a, req: acquire(idB, s), code: held, left: 2 * s, sure: 2 * s},  // the Store that committed it knows
			{by: c, req: acquire(idB, s), code: held, wait: 2 * s},               // it has expired, but not for the newcomer
			{by: b, req: acquire(idB, s)}, {by: a, req: renew(idA), code: lease.ErrIDMismatch},
		},
		"a version was committed after the sending of the last request whose answer did not show it": {
			{by: a, req: acquire(idA, time.Minute)},
			{by: a, req: renew(idA), wait: 3 * s}, // the last request that did not show the break
			{by: b, req: breaks(10 * s), wait: 3 * s},
			{by: a, req: renew(idA), code: lease.ErrBroken, wait: 2 * s, left: 10 * s, sure: 5 * s}, // at least 10 s from the renewal 5 s ago
		},
		"a break only moves the end to an earlier time, even if the observers have computed different ends": {
			{by: a, req: acquire(idA, time.Minute)},
			{by: b, req: breaks(20 * s)},
			{by: c, req: breaks(10 * s), wait: 15 * s, left: 10 * s}, // for c, the break has just begun, and this one is shorter
			{by: b, req: read, left: 5 * s},                          // but b knows that 5 s are left
			{by: b, req: acquire(idB, s), wait: 5 * s},
			{by: c, req: breaks(s / 2)}, // the break of another term does not depend on the first break
			{by: b, req: read, left: s / 2},
		},
		"two terms with the same ID are broken, and b sees only the two breaks": {
			{by: a, req: acquire(idA, lease.Infinite)}, {by: a, req: breaks(10 * s)}, {by: b, req: read},
			{by: a, req: release(idA), wait: s}, {by: a, req: acquire(idA, lease.Infinite)}, {by: a, req: breaks(time.Minute)}, {by: b, req: read},
			{by: b, req: acquire(idB, time.Minute), code: held, wait: 20 * s},
		},
		"an authority never answers from a remembered record alone": {
			{by: a, req: acquire(idA, time.Minute)},
			{by: b, req: acquire(idB, time.Minute), code: held},
			{by: a, req: release(idA)},
			{by: b, req: acquire(idB, time.Minute)}, // although b remembers that the lease is held
			{by: a, req: read, id: idB},
			{by: b, req: release(idB)},
			{by: a, req: write}, // although a remembers that B holds the lease
		},
		"the exchanges of each request": {
			{by: a, req: acquire(idA, time.Minute), sent: 2}, // the first of a name
			{by: a, req: renew(idA), sent: 1}, {by: a, req: renew(idA), sent: 1},
			{by: a, req: acquire(idB, time.Minute), code: held, sent: 1}, // a refusal is loaded
			{by: a, req: read, sent: 1},
			{by: b, req: acquire(idB, time.Minute), code: held, sent: 1},
			{by: a, req: release(idA), sent: 1},
			{by: b, req: acquire(idB, time.Minute), sent: 2},             // the first one is in vain, from an old record
			{by: a, req: acquire(idA, time.Minute), code: held, sent: 1}, // refused by what the conflict shows
			{by: b, req: release(idB), sent: 1}, {by: b, req: acquire(idB, time.Minute), sent: 1},
			{by: a, req: renew(idA), code: lease.ErrIDMismatch, sent: 1},
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newFake()
				var all [3]lease.Authority
				for i := range all {
					all[i] = newStore(t, e, engine.Options{}).Authority()
				}
				for i, s := range steps {
					time.Sleep(s.wait)
					var res lease.Result
					sent := e.count(func() { res = do(t, all[s.by], s.req, s.code) })
					if s.left != 0 && res.MaxRemaining() != s.left || s.sure == none && res.MinRemaining != 0 || s.sure > 0 && !isNear(res.MinRemaining, s.sure) {
						t.Errorf("step %d: remaining %v, sure %v; want %+v", i, res.MaxRemaining(), res.MinRemaining, s)
					}
					if s.sent != 0 && sent != s.sent || !s.id.IsZero() && res.Record.ID != s.id {
						t.Errorf("step %d: %d exchanges, %v; want %+v", i, sent, res.Record, s)
					}
				}
			})
		})
	}
}
