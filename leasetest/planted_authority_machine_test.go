package leasetest

import (
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// step is lease.Step with the bugs of a machine.
func (a *plainAuthority) step(r lease.Record, req lease.Request, now time.Time) (lease.Record, error) {
	was := r.At(now)
	switch a.bug {
	case "expires early":
		return lease.Step(r.At(now.Add(1)), req, now)
	case "expires late":
		return lease.Step(r, req, now.Add(-1))
	case "never expires":
		return lease.Step(r, req, time.Unix(0, 0))
	case "releases whatever the ID":
		if req.Action == lease.ActionRelease {
			req.ID = was.ID
		}
	case "releases a broken lease for an earlier ID":
		if req.Action == lease.ActionRelease && was.State == lease.Broken && slices.Contains(a.granted, req.ID) {
			req.ID = was.ID
		}
	case "renews whatever the ID":
		if req.Action == lease.ActionRenew && was.State == lease.Expired {
			req.ID = was.ID
		}
	case "renews after a break":
		if req.Action == lease.ActionRenew && req.ID == was.ID && was.State == lease.Breaking {
			r = was
			r.State = lease.Leased
			if r.Duration == lease.Infinite {
				r.Until = time.Time{}
			}
		}
	case "does not renew what expired":
		if req.Action == lease.ActionRenew && was.State == lease.Expired {
			return was, lease.ErrIDMismatch
		}
	case "lets the holder take a break back":
		if req.Action == lease.ActionAcquire && req.Proposed == was.ID && was.State == lease.Breaking {
			was.State = lease.Broken
			was.Until = time.Time{}
			return lease.Step(was, req, now)
		}
	case "an owner may acquire again":
		if req.Action == lease.ActionAcquire && req.Owner == was.Owner && was.State == lease.Leased {
			req.Proposed = was.ID
		}
	case "takes no period for none":
		if p, ok := req.Period.Get(); ok && p == 0 {
			req.Period = lease.Period{}
		}
	case "takes none for no period":
		if _, ok := req.Period.Get(); !ok {
			req.Period = lease.Grace(0)
		}
	case "does not break again":
		if req.Action == lease.ActionBreak && (was.State == lease.Breaking || was.State == lease.Broken) {
			return was, lease.ErrAlreadyBroken
		}
	case "a write forgets nothing":
		if req.Action == lease.ActionWrite && req.ID.IsZero() {
			req.Action = lease.ActionRead
		}
	case "a read forgets":
		if req.Action == lease.ActionRead && !was.State.Locked() {
			req.Action = lease.ActionWrite
		}
	case "a break needs the ID":
		if req.Action == lease.ActionBreak && req.ID != was.ID {
			return was, lease.ErrIDMismatch
		}
	case "does not look at versions":
		req.Version = 0
	}
	next, err := lease.Step(r, req, now)
	if err != nil {
		if a.bug == "writes what it refuses" && req.Action == lease.ActionAcquire {
			next.Owner = req.Owner
			next.Epoch++
		}
		return next, err
	}
	a.granted = append(a.granted, next.ID)
	switch a.bug {
	case "a break lengthens":
		if p, ok := req.Period.Get(); ok && req.Action == lease.ActionBreak && was.State.Locked() && p > 0 {
			next.State, next.Until = lease.Breaking, now.Add(p)
		}
	case "a break of what expired is a break":
		if req.Action == lease.ActionBreak && was.State == lease.Expired {
			next.State, next.Until = lease.Breaking, now.Add(time.Second)
		}
	case "a write keeps the owner":
		if req.Action == lease.ActionWrite && req.ID.IsZero() {
			next.Owner = was.Owner
		}
	case "an infinite lease breaks a moment late":
		if p, ok := req.Period.Get(); ok && p == 0 && req.Action == lease.ActionBreak && was.Duration == lease.Infinite && was.State.Locked() {
			next.State, next.Until = lease.Breaking, now.Add(1)
		}
	case "cuts periods to a minute":
		if next.State == lease.Breaking && next.Until.Sub(now) > time.Minute {
			next.Until = now.Add(time.Minute)
		}
	case "an infinite lease breaks late":
		if _, ok := req.Period.Get(); !ok && req.Action == lease.ActionBreak && was.Duration == lease.Infinite {
			next.State, next.Until = lease.Breaking, now.Add(time.Minute)
		}
	case "infinite is a long time":
		if next.State == lease.Leased && next.Duration == lease.Infinite {
			next.Until = now.Add(5 * 365 * 24 * time.Hour)
		}
	case "a change starts the duration anew":
		if req.Action == lease.ActionChange && next.Duration != lease.Infinite {
			next.Until = now.Add(next.Duration)
		}
	case "a change issues no token":
		if req.Action == lease.ActionChange {
			next.Epoch = was.Epoch
		}
	case "a change to the same ID is refused":
		if req.Action == lease.ActionChange && was.ID == req.Proposed {
			return was, lease.ErrIDMismatch
		}
	case "a renewal forgets the owner":
		if req.Action == lease.ActionRenew {
			next.Owner = ""
		}
	case "a break forgets the owner":
		if req.Action == lease.ActionBreak {
			next.Owner = ""
		}
	case "a change forgets the owner":
		if req.Action == lease.ActionChange {
			next.Owner = req.Owner
		}
	case "what is over keeps its end":
		if was.State.Locked() && next.State == lease.Broken {
			next.Until = now
		}
	case "a renewal issues a token":
		if req.Action == lease.ActionRenew {
			next.Epoch++
		}
	case "a renewal adds to what is left":
		if req.Action == lease.ActionRenew && !was.Until.IsZero() {
			next.Until = was.Until.Add(was.Duration)
		}
	case "tokens begin anew with a release":
		if req.Action == lease.ActionRelease {
			next.Epoch = 0
		}
	case "tokens begin anew with an ID":
		if req.Action == lease.ActionAcquire && was.ID != req.Proposed {
			next.Epoch = 1
		}
	case "the same ID gets the same token":
		if req.Action == lease.ActionAcquire && was.ID == req.Proposed {
			next.Epoch = was.Epoch
		}
	case "a release keeps the lock":
		if req.Action == lease.ActionRelease && was.State == lease.Breaking {
			return was, nil
		}
	case "an acquire keeps the old duration":
		if req.Action == lease.ActionAcquire && was.State == lease.Leased {
			next.Duration, next.Until = was.Duration, was.Until
		}
	}
	return next, nil
}
