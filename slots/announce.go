package slots

import (
	"context"
	"sync/atomic"

	"github.com/fencedlease/lease/internal/member"
)

// An announcement is a lease in whose owner a process publishes its number of slots after SetN has changed
// this number. The other leases of the process were acquired earlier, and still contain the earlier number.
// When no call of Run is running any more, the process releases the lease.
type announcement struct {
	runs  atomic.Int64  // calls of Run that have not returned
	turn  chan struct{} // full while lease is in use
	lease *member.Lease
}

// The method leave must be called when a call of Run ends. If no other call of Run is running, the method
// releases the lease with which the process has announced its number of slots.
func (a *announcement) leave(ctx context.Context) {
	if a.runs.Add(-1) > 0 {
		return
	}
	a.turn <- struct{}{} // does not block for long, because the requests have time limits
	if a.runs.Load() == 0 && a.lease != nil {
		_ = a.lease.End(ctx)
		a.lease = nil
	}
	<-a.turn
}

// announce writes n into the lease of the announcement. It does nothing if no call of Run is running.
func (s *Slots) announce(ctx context.Context, n int) error {
	a := &s.announced
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.runs.Load() == 0 {
		return nil
	}
	me := waiter{id: s.process, process: s.process, n: n}
	if a.lease == nil {
		l, err := s.lease(announcedName, s.drawID(), me)
		if err != nil {
			return err
		}
		a.lease = l
	}
	return a.lease.Show(ctx, ownerOf(s.o.Session.Owner, me))
}
