package slots

import (
	"context"
	"sync/atomic"

	"github.com/fencedlease/lease/internal/member"
)

// An announcement tells the other processes how many slots this process knows of after SetN has changed
// the number. It is needed because the owners of the leases that its calls of Run already have still show
// the earlier number. It is a lease of its own, which the process has until no call of Run is under way.
type announcement struct {
	runs  atomic.Int64  // calls of Run under way
	turn  chan struct{} // full while lease is in use
	lease *member.Lease
}

// leave ends a call of Run, and with the last one the announcement.
func (a *announcement) leave(ctx context.Context) {
	if a.runs.Add(-1) > 0 {
		return
	}
	a.turn <- struct{}{} // its requests have time limits
	if a.runs.Load() == 0 && a.lease != nil {
		_ = a.lease.End(ctx)
		a.lease = nil
	}
	<-a.turn
}

// announce makes the lease say n. Without a call of Run there is nothing to announce.
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
