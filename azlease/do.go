package azlease

import (
	"context"
	"time"

	"github.com/fencedlease/lease"
)

// Do implements [lease.Authority]. Each action is the operation of the service with that name. A read
// gets the properties of the blob, and a write writes its metadata as it is.
//
// A grant shows the record with the ID of the request. No answer shows an ID that the request did not
// have, because the service does not tell it. A read shows the state, and the owner, the duration and
// the token of the last grant, but not how much time is left: Until is what it can be at most. A
// refusal shows nothing, but for a renewal of a lease that is breaking, which shows the time that is
// left.
//
// Seconds are the unit of the service: parts of a second in a duration or a period are dropped.
func (c *Container) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := c.do(ctx, name, req)
	if err != nil {
		err = &lease.OpError{Op: req.Action.String(), Name: name, Err: err}
	}
	return res, err
}

func (c *Container) do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if err := CheckName(name); err != nil {
		return lease.Result{}, err
	}
	if err := limits.Check(req); err != nil {
		return lease.Result{}, err
	}
	if !req.Version.DurationRequired() {
		return lease.Result{}, &lease.FieldError{Field: "Request.Version", Value: req.Version.String(),
			Bound: "must be 2012-02-12 or newer, which is what the SDK speaks", Code: lease.ErrVersion}
	}
	if err := ctx.Err(); err != nil {
		return lease.Result{}, err
	}
	o := operation{c, once(ctx), name}
	switch req.Action {
	case lease.ActionAcquire:
		return o.acquire(req)
	case lease.ActionRenew:
		return o.renew(req.ID)
	case lease.ActionChange:
		return o.change(req)
	case lease.ActionRelease:
		return o.release(req.ID)
	case lease.ActionBreak:
		return o.breakIn(req.Period)
	case lease.ActionWrite:
		return o.write(req.ID)
	}
	return o.read(req.ID)
}

// An operation is one request under way.
type operation struct {
	*Container
	ctx  context.Context // of this call of Do
	name string
}

// failed returns the error for the answer to the first exchange of an action: a Code, if the service
// refused it.
func (o operation) failed(a lease.Action, err error) error {
	if code := refusal(a, err); code != 0 {
		return code
	}
	return o.explain(a.String(), err)
}

func (o operation) explain(what string, err error) error {
	return explain(what, o.client.NewBlobClient(o.name).URL(), err)
}

// held returns the result for a lease that was granted or renewed for the duration of g.
func held(id lease.ID, g grant) lease.Result {
	return result(id, lease.Leased, g, g.duration, g.duration)
}

// result returns a result that shows a locked or unlocked record. The lease stays locked for at least
// least and at most most. The time is that of this machine: the service shows its own in whole seconds.
func result(id lease.ID, state lease.State, g grant, least, most time.Duration) lease.Result {
	res := lease.Result{Now: time.Now().UTC().Round(0), Record: lease.Record{State: state, Epoch: g.epoch}}
	if state == lease.Available {
		return res
	}
	res.Record.ID, res.Record.Owner, res.Record.Duration = id, g.owner, g.duration
	if state.Locked() {
		res.MinRemaining = least
		if most != lease.Infinite {
			res.Record.Until = res.Now.Add(most)
		}
	}
	return res
}
