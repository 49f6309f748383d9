package azlease

import (
	"context"
	"time"

	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Do implements [lease.Authority]. For an acquire, a renewal, a change, a release or a break, Do calls the
// service's lease operation of the same name. For a read, Do gets the properties of the blob. For a write, Do
// stores the metadata of the blob again without changes.
//
// The service does not report lease IDs. A result therefore contains an ID only in two cases. In the first
// case, the request contained the ID. In the second case, this Container once sent an acquire under an ID,
// the service refused the acquire, and another holder has later handed the lease over to that ID. The result
// of a read contains the state of the lease, and the owner, the duration and the token of the last grant. The
// answer of the service to a read does not contain the remaining time, so the field Until is the latest time
// at which the last grant of azlease can end. If the lease is breaking, the value of Until also depends on
// the breaks that this Container has sent or read. The lease can end after Until in two cases: a program
// without azlease has leased the blob since the last grant, or a process has just acquired the lease and has
// not written its token yet.
//
// The result of a refused request is empty, with one exception. If the service refuses to renew a breaking
// lease, Do requests the remaining time of the lease from the service, and returns this time in the result.
//
// Do refuses a request whose Version is older than 2012-02-12. Because the service counts time in whole
// seconds, Do rounds durations and break periods down to whole seconds.
//
// At most 64 requests of a Container are sent at a time, renewals and releases first. If the service is so
// busy that it could not renew one more lease in time, Do refuses to acquire another lease, and returns an
// [engine.FullError].
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
	if req.Version != 0 && req.Version < lease.Version20120212 {
		return lease.Result{}, &lease.FieldError{Field: "Request.Version", Value: req.Version.String(),
			Bound: "must be 2012-02-12 or newer, which is what the SDK speaks", Code: lease.ErrVersion}
	}
	if err := ctx.Err(); err != nil {
		return lease.Result{}, err
	}
	id := req.ID
	if req.Action == lease.ActionAcquire {
		id = req.Proposed
	}
	text := id.String()
	leases, err := azl.NewBlobClient(c.client.NewBlobClient(name), &azl.BlobClientOptions{LeaseID: &text})
	if err != nil {
		return lease.Result{}, err
	}
	var turn engine.Request
	switch req.Action {
	case lease.ActionAcquire:
		if err := c.gate.Admit(name, req.Duration); err != nil {
			return lease.Result{}, err
		}
	case lease.ActionRenew:
		turn = engine.Request{Urgent: true, Name: name, Renewals: 1}
	case lease.ActionRelease:
		turn.Urgent = true
	}
	var res lease.Result
	err = c.gate.Do(ctx, turn, func() (err error) {
		res, err = operation{c, withoutRetries(ctx), name, leases}.do(req)
		return err
	})
	if err == nil && req.Action != lease.ActionRead && req.Action != lease.ActionWrite {
		c.gate.Note(name, res.Record)
	}
	return res, err
}

func (o operation) do(req lease.Request) (lease.Result, error) {
	switch req.Action {
	case lease.ActionAcquire:
		return o.acquire(req)
	case lease.ActionRenew:
		return o.renew(req.ID)
	case lease.ActionChange:
		return o.changeID(req)
	case lease.ActionRelease:
		return o.release(req.ID)
	case lease.ActionBreak:
		return o.breakIn(req.Period)
	case lease.ActionWrite:
		return o.write(req.ID)
	}
	return o.read(req.ID)
}

// An operation is a running call of Do.
type operation struct {
	*Container
	ctx    context.Context // the context of this call of Do
	name   string
	leases *azl.BlobClient // for lease operations under the ID of the request
}

// errorOf converts an error of the SDK to the error that Do returns, which is a [lease.Code] if the
// service refused the action.
func (o operation) errorOf(a lease.Action, err error) error {
	if code := refusalOf(a, err); code != 0 {
		return code
	}
	return describeError(a.String(), o.client.NewBlobClient(o.name).URL(), err)
}

// heldResult returns the result for a lease that was just granted or renewed for g.duration.
func heldResult(id lease.ID, g grant) lease.Result {
	return newResult(id, lease.Leased, g, g.duration, g.duration)
}

// newResult returns a result whose record has the given state. If the lease is locked in that state, the
// parameters least and most are the shortest and the longest time for which it can stay locked. Otherwise
// newResult ignores them. The field Now of the result is the time of this machine, because the service
// reports its own time only in whole seconds.
func newResult(id lease.ID, state lease.State, g grant, least, most time.Duration) lease.Result {
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
