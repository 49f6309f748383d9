package azlease

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// renew starts the duration anew. That is one exchange. If the blob was written since this Container
// last saw it, the metadata is read again, which makes two.
func (o operation) renew(id lease.ID) (lease.Result, error) {
	client, err := o.leaseClient(o.name, id)
	if err != nil {
		return lease.Result{}, err
	}
	answer, err := client.RenewLease(o.ctx, nil)
	if err != nil {
		err = o.failed(lease.ActionRenew, err)
		if err == lease.ErrBroken {
			return o.breaking(client, id), err
		}
		return lease.Result{}, err
	}
	v := o.known.get(o.name)
	if v.etag != *answer.ETag {
		seen, _, err := o.load(id)
		if err != nil {
			return lease.Result{}, unknown(err)
		}
		if seen.epoch == 0 && v.of(id) {
			seen.grant = v.grant // an upload has replaced the metadata
		}
		v = seen
	}
	if !v.of(id) {
		return lease.Result{}, errNoToken
	}
	o.known.put(o.name, v)
	return held(id, v.grant, answer.Date), nil
}

// breaking returns what is left of a lease that cannot be renewed because it was broken. The service
// tells that only in the answer to another break, with a period that is longer than what is left and
// so changes nothing. The lease was breaking under id just before. If another holder has followed
// since, the condition on the ETag stops the break, unless that holder has not written its token yet:
// then its lease breaks in a minute, or at its end.
func (o operation) breaking(client *azl.BlobClient, id lease.ID) lease.Result {
	v, props, err := o.load(id)
	if err != nil || props.LeaseState == nil || *props.LeaseState != azl.StateTypeBreaking {
		return lease.Result{}
	}
	longest := int32(limits.MaxPeriod / time.Second)
	answer, err := client.BreakLease(o.ctx, &azl.BlobBreakOptions{BreakPeriod: &longest, ModifiedAccessConditions: &azl.ModifiedAccessConditions{IfMatch: &v.etag}})
	if err != nil || answer.LeaseTime == nil {
		return lease.Result{}
	}
	least, most := left(*answer.LeaseTime, lease.Grace(limits.MaxPeriod))
	return result(id, lease.Breaking, v.grant, least, most, answer.Date)
}

// left returns the bounds of the time for which a lease stays locked, from the answer to a break. The
// service calls its answer approximate. It cuts off parts of a second, and the emulator Azurite rounds
// them. A period that was used is exact.
func left(answered int32, p lease.Period) (least, most time.Duration) {
	t := time.Duration(answered) * time.Second
	least, most = max(0, t-time.Second), t+time.Second
	if period, given := p.Get(); given {
		most = min(most, whole(period))
	}
	return least, most
}

// release gives the lease up.
func (o operation) release(id lease.ID) (lease.Result, error) {
	client, err := o.leaseClient(o.name, id)
	if err != nil {
		return lease.Result{}, err
	}
	answer, err := client.ReleaseLease(o.ctx, nil)
	if err != nil {
		return lease.Result{}, o.failed(lease.ActionRelease, err)
	}
	return result(id, lease.Available, o.last(answer.ETag), 0, 0, answer.Date), nil
}

// breaks breaks the lease. If the answer does not tell whether the lease is still breaking, a read
// does.
func (o operation) breaks(p lease.Period) (lease.Result, error) {
	client, err := o.leaseClient(o.name, lease.ID{1}) // a break needs no ID
	if err != nil {
		return lease.Result{}, err
	}
	options := &azl.BlobBreakOptions{}
	period, given := p.Get()
	if given {
		seconds := int32(period / time.Second)
		options.BreakPeriod = &seconds
	}
	answer, err := client.BreakLease(o.ctx, options)
	if err != nil {
		return lease.Result{}, o.failed(lease.ActionBreak, err)
	}
	least, most, state := time.Duration(0), time.Duration(0), lease.Breaking
	switch {
	case answer.LeaseTime != nil && *answer.LeaseTime > 0:
		least, most = left(*answer.LeaseTime, p)
	case given && whole(period) == 0:
		state = lease.Broken
	default:
		if _, props, err := o.load(lease.ID{}); err != nil {
			return lease.Result{}, unknown(err)
		} else if props.LeaseState == nil || *props.LeaseState != azl.StateTypeBreaking {
			state = lease.Broken // and perhaps somebody else has the lease by now
		}
		most = time.Second
	}
	return result(lease.ID{}, state, o.last(answer.ETag), least, most, answer.Date), nil
}

// last returns the last grant, if it is known at that ETag.
func (o operation) last(etag *azcore.ETag) grant {
	if v := o.known.get(o.name); etag != nil && v.etag == *etag {
		return v.grant
	}
	return grant{}
}

// read reads the blob, under the lease of id unless that is zero.
func (o operation) read(id lease.ID) (lease.Result, error) {
	v, props, err := o.load(id)
	switch {
	case err == lease.ErrNotPresent && id.IsZero():
		return result(lease.ID{}, lease.Available, grant{}, 0, 0, props.Date), nil
	case err != nil:
		return lease.Result{}, err
	}
	return seen(id, v.grant, props.LeaseState, props.LeaseDuration, props.Date), nil
}

var states = map[azl.StateType]lease.State{
	azl.StateTypeAvailable: lease.Available,
	azl.StateTypeLeased:    lease.Leased,
	azl.StateTypeExpired:   lease.Expired,
	azl.StateTypeBreaking:  lease.Breaking,
	azl.StateTypeBroken:    lease.Broken,
}

// seen returns the result for properties of a blob. They do not tell how much time is left.
func seen(id lease.ID, g grant, state *azl.StateType, kind *azl.DurationType, date *time.Time) lease.Result {
	s := lease.Available
	if state != nil {
		s = states[*state]
	}
	infinite := kind != nil && *kind == azl.DurationTypeInfinite
	switch {
	case s == lease.Leased && infinite:
		g.duration = lease.Infinite
		return result(id, s, g, lease.Infinite, lease.Infinite, date)
	case g.duration == 0 || s == lease.Leased && g.duration == lease.Infinite:
		g.duration = limits.MaxDuration // the last grant is not the one in force, which is finite
	}
	return result(id, s, g, 0, min(g.duration, limits.MaxPeriod), date)
}

// write writes the metadata as it is, under the lease of id unless that is zero.
func (o operation) write(id lease.ID) (lease.Result, error) {
	for range tries {
		v, props, err := o.load(id)
		switch {
		case err == lease.ErrNotPresent && id.IsZero():
			return result(id, lease.Available, grant{}, 0, 0, props.Date), nil // there is nothing to forget
		case err != nil:
			return lease.Result{}, err
		}
		etag, err := o.store(v, id)
		switch {
		case err == nil:
			if v.etag = etag; v.epoch > 0 { // or what is remembered says more
				o.known.put(o.name, v)
			}
			if id.IsZero() {
				return result(id, lease.Available, v.grant, 0, 0, props.Date), nil
			}
			return seen(id, v.grant, props.LeaseState, props.LeaseDuration, props.Date), nil
		case serviceCode(err) != codeConditionNotMet:
			return lease.Result{}, o.failed(lease.ActionWrite, err)
		}
	}
	return lease.Result{}, o.busy()
}
