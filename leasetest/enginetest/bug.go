package enginetest

import (
	"context"

	"github.com/fencedlease/lease"
)

// A bug is planted in the holders or in their resource, to check that [TestHolders] finds it.
type bug string

const (
	noGuard    bug = "there is no guard"
	noAdvance  bug = "holders read before they show their token"
	noDeadline bug = "holders believe until they are told otherwise"
	early      bug = "contenders wait for a quarter of the duration"
)

var bugs = []bug{noGuard, noAdvance, noDeadline, early}

func (b bug) authority(a lease.Authority) lease.Authority {
	if b == early {
		return hasty{a}
	}
	return a
}

// A hasty authority ends the lease of another holder too early, when a quarter of the duration has passed
// since the last renewal, and then grants the lease to its own holder.
type hasty struct{ lease.Authority }

func (h hasty) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := h.Authority.Do(ctx, name, req)
	held := lease.CodeOf(err) == lease.ErrHeldByOther
	if req.Action != lease.ActionRead && !held || !res.Record.State.Locked() {
		return res, err
	}
	early := res.Record.Duration * 3 / 4
	if held && res.MinRemaining < early {
		_, _ = h.Authority.Do(ctx, name, lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)})
		return h.Authority.Do(ctx, name, req)
	}
	res.MinRemaining, res.Record.Until = max(0, res.MinRemaining-early), res.Record.Until.Add(-early)
	return res, err
}
