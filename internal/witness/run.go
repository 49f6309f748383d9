package witness

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// Run has clients do what they like with one lease, at the same time, each through a store of
// its own, and returns the history. All that they do is drawn from the seed; how it interleaves is
// not.
func Run(ctx context.Context, seed uint64, name string, stores []lease.Store, requests int, d time.Duration) *History {
	h := New()
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			a := lease.NewAuthority(h.Store(s))
			var mine lease.ID
			for range requests {
				req := draw(r, &mine, d)
				res, err := a.Do(ctx, name, req)
				if req.Action == lease.Acquire && err != nil && lease.CodeOf(err) == 0 {
					mine = req.Proposed // unknown: it may have it
				}
				if err == nil && (req.Action == lease.Acquire || req.Action == lease.Change) {
					mine = res.Record.ID
				}
			}
		})
	}
	all.Wait()
	return h
}

// draw draws a request.
func draw(r *rand.Rand, mine *lease.ID, d time.Duration) lease.Request {
	var id lease.ID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	switch n := r.IntN(16); {
	case n < 6:
		return lease.Request{Action: lease.Acquire, Proposed: id, Duration: 1 + time.Duration(r.Int64N(int64(d)))}
	case n < 10 && !mine.IsZero():
		return lease.Request{Action: lease.Renew, ID: *mine}
	case n < 11 && !mine.IsZero():
		return lease.Request{Action: lease.Change, ID: *mine, Proposed: id}
	case n < 12 && !mine.IsZero():
		return lease.Request{Action: lease.Release, ID: *mine}
	case n < 13:
		return lease.Request{Action: lease.Break, Period: lease.In(time.Duration(r.Int64N(int64(d))))}
	case n < 14:
		return lease.Request{Action: lease.Write}
	}
	return lease.Request{Action: lease.Read}
}
