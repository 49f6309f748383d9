package linearize

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
)

// A Workload configures the requests of one history. A nil *Workload or a zero field means the default.
type Workload struct {
	Name     string        // the name of the lease. Default: "linearize"
	Clients  int           // the number of concurrent clients. Default: 4
	Requests int           // the number of requests of each client. Default: 12
	Term     time.Duration // the longest finite duration, at least 1 µs. Default: 1 s
	Timeout  time.Duration // the timeout of a request. Default: a tenth of Term
	Seed     uint64        // the seed of all random choices

	// Delay is the longest time that ContendStore waits after each load and before each swap. Before each
	// load and after each swap, ContendStore waits for up to a quarter of Delay. For every fourth client, the
	// delays are ten times shorter, so that this client can write several times between the load and the swap
	// of another client. Longer delays make the search slower. A negative Delay means no delays. Default: a
	// thirtieth of Term.
	Delay time.Duration
}

// Run makes one client for each authority. These clients contend for a lease, as in [Recorder.Contend]. Run
// then calls [Recorder.Check] with a limit of one minute, and returns the number of requests and the error of
// Check. The field [Workload].Clients is ignored.
func Run(ctx context.Context, authorities []lease.Authority, o *Options, w *Workload) (requests int, err error) {
	r, err := NewRecorder(o)
	if err != nil {
		return 0, err
	}
	c := Workload{}
	if w != nil {
		c = *w
	}
	c.Clients = len(authorities)
	r.Contend(ctx, func(client int) lease.Authority { return authorities[client] }, &c)
	return r.Len(), r.Check(time.Minute, "")
}

// Contend runs several clients at the same time, and records their requests as one history. The function
// authorityFor returns the authority for the client with the given number. All clients may use the same
// authority.
//
// A request contains one of three IDs: a random ID, the ID that was granted last to its client, or the ID
// that was granted last to any of the clients. Before each request, a client pauses for a random time:
// usually up to a fortieth of the Term, sometimes up to a quarter. If the lease ends within half of the Term,
// some pauses last until shortly before the end of the lease. After a request of unknown outcome, the client
// pauses for [Workload.Timeout]. Without these pauses, many such requests would overlap, and [Recorder.Check]
// would be slow. If ctx ends, the clients end their pauses and make no further requests.
//
// The requests depend only on [Workload.Seed] and on the answers to earlier requests. In a synctest bubble,
// the same Seed always leads to the same history, unless the code under test makes random choices. If the
// history is not linearizable, the error of [Recorder.Check] contains the Seed.
func (r *Recorder) Contend(ctx context.Context, authorityFor func(client int) lease.Authority, w *Workload) {
	var c Workload
	if w != nil {
		c = *w
	}
	c.Name, c.Clients = cmp.Or(c.Name, "linearize"), cmp.Or(c.Clients, 4)
	c.Requests, c.Term = cmp.Or(c.Requests, 12), cmp.Or(c.Term, time.Second)
	c.Timeout = cmp.Or(c.Timeout, c.Term/10)
	r.mu.Lock()
	r.seeds = append(r.seeds, c.Seed)
	r.mu.Unlock()
	var newest atomic.Pointer[lease.ID]
	var all sync.WaitGroup
	for i := range c.Clients {
		a := r.Authority(i, authorityFor(i))
		all.Go(func() { c.client(ctx, a, &newest, rand.New(rand.NewPCG(c.Seed, uint64(i)))) })
	}
	all.Wait()
}

// ContendStore is like Contend, but the clients use authorities that [lease.NewAuthority] makes from the
// store. It delays loads and swaps by up to [Workload.Delay], so that the requests of the clients overlap.
func (r *Recorder) ContendStore(ctx context.Context, s lease.Store, w *Workload) {
	var c Workload
	if w != nil {
		c = *w
	}
	c.Delay = cmp.Or(c.Delay, cmp.Or(c.Term, time.Second)/30)
	r.Contend(ctx, func(client int) lease.Authority {
		if c.Delay < 0 {
			return lease.NewAuthority(s)
		}
		longest := c.Delay
		if client%4 == 1 {
			longest /= 10
		}
		rng := rand.New(rand.NewPCG(c.Seed, uint64(client)<<32)) // needs no mutex, because a client makes one request at a time
		delay := func(before, after time.Duration) leasefault.Fault {
			return func(ctx context.Context, c *leasefault.Call) error {
				if err := pause(ctx, time.Duration(rng.Int64N(int64(before)+1))); err != nil {
					return err
				}
				if c.Send(ctx) != nil {
					return nil
				}
				return pause(ctx, time.Duration(rng.Int64N(int64(after)+1))) // if ctx is done during the pause, the answer is lost
			}
		}
		return lease.NewAuthority(leasefault.ScriptStore(s,
			leasefault.Always(leasefault.Load, delay(longest/4, longest)), leasefault.Always(leasefault.Swap, delay(longest, longest/4))))
	}, &c)
}

// pause waits for the time d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The method client makes the requests of one client. Whenever a client is granted a new ID, it stores this
// ID in a variable that all clients share. Most requests use the ID in this variable. The other requests use
// the latest ID that the client itself was granted. If the outcome of a later acquire is unknown, these
// requests use the ID of that acquire, because it may have been granted. A client without an ID uses random
// IDs. A request that was certainly not executed does not count, so the client makes another one.
func (w *Workload) client(ctx context.Context, a lease.Authority, newest *atomic.Pointer[lease.ID], rng *rand.Rand) {
	var own lease.ID
	var left time.Duration // how long the lease stays locked according to the last answer
	for made, tried := 0, 0; made < w.Requests && tried < 10*w.Requests; tried++ {
		if pause(ctx, w.pause(rng, left)) != nil {
			return
		}
		id := own
		if n := newest.Load(); n != nil && rng.IntN(4) > 0 {
			id = *n
		}
		req := w.draw(rng, id, left > 0)
		bounded, cancel := context.WithTimeout(ctx, w.Timeout)
		res, err := a.Do(bounded, w.Name, req)
		cancel()
		left = res.MinRemaining
		if lease.CodeOf(err) == lease.ErrUnsent {
			_ = pause(ctx, min(w.Timeout, 2*w.Term))
			continue
		}
		made++
		switch gives := req.Action == lease.ActionAcquire || req.Action == lease.ActionChange; {
		case err == nil && gives:
			own = res.Record.ID
			newest.Store(&res.Record.ID)
		case err != nil && lease.CodeOf(err) == 0:
			if req.Action == lease.ActionAcquire {
				own = req.Proposed
			}
			_ = pause(ctx, w.Timeout)
		}
	}
}

// After each answer, a client waits before it makes the next request. The method pause draws the length of
// this wait. Some pauses end shortly before the lock does, so that the lock can end while the next request is
// decided.
func (w *Workload) pause(rng *rand.Rand, left time.Duration) time.Duration {
	long, short := time.Duration(rng.Int64N(int64(w.Term/4))), time.Duration(rng.Int64N(int64(w.Term/40)))
	switch rng.IntN(5) {
	case 0:
		return long
	case 1, 2:
		if 0 < left && left < w.Term/2 {
			return max(0, left-long/5)
		}
	}
	return short
}

// The method draw chooses from these actions. Most actions write the record of a lease that is held. Breaks
// are rare: after a break, the holder can neither renew nor change its lease, so the authority refuses most
// of the following requests.
var actions = []lease.Action{
	lease.ActionAcquire, lease.ActionAcquire,
	lease.ActionRenew, lease.ActionRenew,
	lease.ActionChange, lease.ActionChange, lease.ActionChange,
	lease.ActionRelease, lease.ActionRelease,
	lease.ActionBreak, lease.ActionRead, lease.ActionWrite,
}

// draw returns a random request. While the lease is not locked, more than half of the requests are acquires.
func (w *Workload) draw(rng *rand.Rand, mine lease.ID, locked bool) lease.Request {
	id := lease.ID{}
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	req := lease.Request{
		Action: actions[rng.IntN(len(actions))], ID: mine, Proposed: id,
		Owner: []string{"", "a", "b"}[rng.IntN(3)], Duration: 1 + time.Duration(rng.Int64N(int64(w.Term))),
	}
	if rng.IntN(4) > 0 { // some servers measure in microseconds
		req.Duration = req.Duration.Truncate(time.Microsecond) + time.Microsecond
	}
	if !locked && rng.IntN(2) == 0 {
		req.Action = lease.ActionAcquire
	}
	if rng.IntN(20) == 0 {
		req.Duration = lease.Infinite
	}
	if rng.IntN(2) == 0 {
		req.Period = lease.Grace(time.Duration(rng.Int64N(int64(w.Term / 2))))
	}
	if mine.IsZero() && (req.Action == lease.ActionRenew || req.Action == lease.ActionChange || req.Action == lease.ActionRelease) {
		req.ID = id
	}
	return req
}
