package histories

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// Run lets several clients work on one lease at the same time, each with a store of its own, and returns
// the history. The seed determines the requests, but not how they interleave.
func Run(ctx context.Context, seed uint64, name string, stores []lease.Store, requests int, d time.Duration) *History {
	h := new(History)
	authorities := make([]lease.Authority, len(stores))
	for i, s := range stores {
		authorities[i] = lease.NewAuthority(h.Store(s))
	}
	h.Run(ctx, seed, name, authorities, requests, d)
	return h
}

// Run is like the function Run, but the clients use authorities, and the history records their answers. The
// caller must record the exchanges of the authorities in it.
func (h *History) Run(ctx context.Context, seed uint64, name string, authorities []lease.Authority, requests int, d time.Duration) {
	var all sync.WaitGroup
	for i, a := range authorities {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			var mine lease.ID
			for range requests {
				req := draw(r, &mine, d)
				call := time.Now()
				res, err := a.Do(ctx, name, req)
				h.answer(answer{call, time.Now(), req, res, err})
				if req.Action == lease.ActionAcquire && err != nil && lease.CodeOf(err) == 0 {
					mine = req.Proposed // the outcome is unknown, so the client may hold the lease with this ID
				}
				if err == nil && (req.Action == lease.ActionAcquire || req.Action == lease.ActionChange) {
					mine = res.Record.ID
				}
			}
		})
	}
	all.Wait()
}

func draw(r *rand.Rand, mine *lease.ID, d time.Duration) lease.Request {
	var id lease.ID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	switch n := r.IntN(16); {
	case n < 6:
		return lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: 1 + time.Duration(r.Int64N(int64(d)))}
	case n < 10 && !mine.IsZero():
		return lease.Request{Action: lease.ActionRenew, ID: *mine}
	case n < 11 && !mine.IsZero():
		return lease.Request{Action: lease.ActionChange, ID: *mine, Proposed: id}
	case n < 12 && !mine.IsZero():
		return lease.Request{Action: lease.ActionRelease, ID: *mine}
	case n < 13:
		return lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Duration(r.Int64N(int64(d))))}
	case n < 14:
		return lease.Request{Action: lease.ActionWrite}
	}
	return lease.Request{Action: lease.ActionRead}
}
