package slots

import (
	"context"
	"sync/atomic"

	"github.com/fencedlease/lease/internal/numbered"
	"github.com/fencedlease/lease/session"
)

// An announcement tells the other processes how many slots this one knows of, once SetN has changed the
// number: the owners of the leases that its calls of Run already have show the earlier one. It is a lease
// of its own, which the process has until no call of Run is under way.
type announcement struct {
	runs  atomic.Int64  // calls of Run under way
	turn  chan struct{} // full while the fields below are in use
	lease *numbered.Lease
	n     int // what the lease announces
}

// leave ends a call of Run, and with the last one the announcement.
func (a *announcement) leave(ctx context.Context, o *session.Options) {
	if a.runs.Add(-1) > 0 {
		return
	}
	a.turn <- struct{}{} // its requests have time limits
	if a.runs.Load() == 0 {
		a.end(ctx, o)
	}
	<-a.turn
}

func (a *announcement) end(ctx context.Context, o *session.Options) {
	if a.lease != nil {
		_ = numbered.Close(ctx, a.lease.Session, o)
		a.lease = nil
	}
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
	if a.n != n {
		a.end(ctx, s.o.Session)
	}
	if a.lease == nil {
		me := waiter{id: s.process, process: s.process, n: n}
		l, err := numbered.New(s.drawID(), func(i int) (*session.Session, error) { return s.session(announcedName(s.prefix, i), me) })
		if err != nil {
			return err
		}
		a.lease, a.n = l, n
	}
	_, err := a.lease.Acquire(ctx) // sends nothing if the lease is held
	return err
}
