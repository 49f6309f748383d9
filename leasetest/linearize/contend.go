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
