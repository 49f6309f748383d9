package linearize

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Workload is what the clients of one history do. Nil and the zero fields mean the defaults.
type Workload struct {
	Name     string        // of the lease. Default: "linearize"
	Clients  int           // at the same time. Default: 4
	Requests int           // of each. Default: 12; the search takes longer the more there are
	Term     time.Duration // the longest finite lease, at least a microsecond. Default: a second
	Seed     uint64        // of all that is drawn

	// Delay is the longest time that a load or a swap takes on its way, each way, in ContendStore. It
	// is drawn for each. Without delays the requests of clients in one process do not overlap, and
	// nothing can go wrong between a load and a swap. With long ones the search takes long. Default:
	// a thirtieth of Term. Negative: none.
	Delay time.Duration
}

// Contend records one history: clients that ask for anything of the newest version at the same time, under IDs of
// their own and of others, with pauses of up to a quarter of the Term. It returns when all
// are done. The function of gives each client its way to the authority, which may be the same
// for all.
//
// The Seed decides every request. In a synctest bubble it decides the whole history, unless
// what is tested draws by itself; [Recorder.Check] names the Seed if the history fails.
func (r *Recorder) Contend(ctx context.Context, of func(client int) lease.Authority, w *Workload) {
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
		a := r.Authority(i, of(i))
		all.Go(func() { c.client(ctx, a, rand.New(rand.NewPCG(c.Seed, uint64(i)))) })
	}
	all.Wait()
}

// ContendStore is Contend for a store: each client has a [lease.NewAuthority] of it. Loads and swaps are
// delayed as [Workload.Delay] says, so that the requests of the clients overlap.
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

// A delayed store is a store as one client sees it over a network that takes time.
type delayed struct {
	lease.Store
	longest time.Duration
	rng     *rand.Rand // requests of one client follow each other
}

// wait takes up to the longest delay, unless the context ends before.
func (d *delayed) wait(ctx context.Context) error {
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
	if err := d.wait(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	snap, err := d.Store.Load(ctx, name)
	if err != nil {
		return snap, err
	}
	return snap, d.wait(ctx)
}

func (d *delayed) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := d.wait(ctx); err != nil {
		return lease.Snapshot{}, err
	}
	snap, err := d.Store.Swap(ctx, name, old, next)
	if err != nil {
		return snap, err
	}
	return snap, d.wait(ctx) // the answer may be lost
}

// client acquires under IDs of its own, and uses the last that it knows.
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
