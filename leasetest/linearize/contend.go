package linearize

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Workload configures the requests of one history. A nil *Workload and zero fields stand for the
// defaults.
type Workload struct {
	Name     string        // the name of the lease. Default: "linearize"
	Clients  int           // the number of concurrent clients. Default: 4
	Requests int           // the number of requests of each client. Default: 12
	Term     time.Duration // the longest finite duration, at least 1 µs. Default: 1 s
	Seed     uint64        // the seed of all random choices

	// Delay is the upper bound of the delays in ContendStore. ContendStore waits for a random time
	// before and after each load and each swap. Without delays the requests of clients in one
	// process do not overlap. Without overlaps the check cannot find an error that occurs only if
	// another client writes between a load and a swap. Longer delays make the search slower. If
	// Delay is negative, there are no delays. Default: a thirtieth of Term.
	Delay time.Duration
}

// Contend runs several clients concurrently and records their requests as one history. The clients
// make random requests of the newest protocol version, with their own IDs and with random IDs.
// Before each request, a client pauses for a random time of up to a quarter of [Workload.Term]. The
// timeout of each request is a tenth of the Term. Contend returns when all clients are done. If ctx
// is done earlier, the clients still make their remaining requests, with contexts that are done.
// Contend calls authorityFor with the number of each client, to get the authority that this client
// uses. The function authorityFor may return the same authority for all clients.
//
// The requests depend only on [Workload.Seed] and on the answers to earlier requests. In a synctest
// bubble, the same Seed always leads to the same history, unless the code under test makes random
// choices of its own. If the history is not linearizable, [Recorder.Check] returns an error that
// contains the Seed.
func (r *Recorder) Contend(ctx context.Context, authorityFor func(client int) lease.Authority, w *Workload) {
	var c Workload
	if w != nil {
		c = *w
	}
	c.Name, c.Clients = cmp.Or(c.Name, "linearize"), cmp.Or(c.Clients, 4)
	c.Requests, c.Term = cmp.Or(c.Requests, 12), cmp.Or(c.Term, time.Second)
	r.mu.Lock()
	r.seeds = append(r.seeds, c.Seed)
	r.mu.Unlock()
	var all sync.WaitGroup
	for i := range c.Clients {
		a := r.Authority(i, authorityFor(i))
		all.Go(func() { c.client(ctx, a, rand.New(rand.NewPCG(c.Seed, uint64(i)))) })
	}
	all.Wait()
}

// ContendStore is like Contend, but for a store. Each client uses an authority of its own, which
// [lease.NewAuthority] makes from the store. ContendStore delays loads and swaps by up to
// [Workload.Delay], so that the requests of the clients overlap.
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
		return lease.NewAuthority(&delayed{Store: s, longest: c.Delay, rng: rand.New(rand.NewPCG(c.Seed, uint64(client)<<32))})
	}, &c)
}

// A delayed store simulates the network between one client and a store. It delays every load and
// swap.
type delayed struct {
	lease.Store
	longest time.Duration
	rng     *rand.Rand // needs no mutex, because a client makes one request at a time
}

// pause waits for a random time up to the longest delay. If ctx is done first, pause returns the
// error of ctx.
func (d *delayed) pause(ctx context.Context) error {
	timer := time.NewTimer(time.Duration(d.rng.Int64N(int64(d.longest) + 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *delayed) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := d.pause(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	snap, err := d.Store.Load(ctx, name)
	if err != nil {
		return snap, err
	}
	return snap, d.pause(ctx)
}

func (d *delayed) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := d.pause(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	snap, err := d.Store.Swap(ctx, name, old, next)
	if err != nil {
		return snap, err
	}
	return snap, d.pause(ctx) // if ctx is done during this wait, the answer is lost
}

// client makes the requests of one client. Each request to acquire or to change proposes a new ID.
// The other requests use the ID that the client was granted last, or the ID that it proposed later in
// an acquire whose outcome it does not know. A client that has no ID yet uses random IDs when it
// renews, changes or releases.
func (w *Workload) client(ctx context.Context, a lease.Authority, rng *rand.Rand) {
	var mine lease.ID
	for range w.Requests {
		time.Sleep(time.Duration(rng.Int64N(int64(w.Term / 4))))
		req := w.draw(rng, mine)
		bounded, cancel := context.WithTimeout(ctx, w.Term/10)
		res, err := a.Do(bounded, w.Name, req)
		cancel()
		switch gives := req.Action == lease.ActionAcquire || req.Action == lease.ActionChange; {
		case err == nil && gives:
			mine = res.Record.ID
		case err != nil && lease.CodeOf(err) == 0 && req.Action == lease.ActionAcquire:
			mine = req.Proposed
		}
	}
}

func (w *Workload) draw(rng *rand.Rand, mine lease.ID) lease.Request {
	id := lease.ID{}
	for i := range id {
		id[i] = byte(rng.Uint32())
	}
	req := lease.Request{
		Action: lease.Action(1 + rng.IntN(7)), ID: mine, Proposed: id,
		Owner: []string{"", "a", "b"}[rng.IntN(3)], Duration: 1 + time.Duration(rng.Int64N(int64(w.Term))),
	}
	if rng.IntN(3) == 0 {
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
