package azlease

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// renew renews the lease for its whole duration. A renewal usually takes one request. If the blob has changed
// since the Container last read its metadata, renew also reads the metadata.
func (o operation) renew(id lease.ID) (lease.Result, error) {
	answer, err := o.leases.RenewLease(o.ctx, nil)
	if err != nil {
		err = o.errorOf(lease.ActionRenew, err)
		if err == lease.ErrBroken {
			return o.remainingAfterBreak(id), err
		}
		return lease.Result{}, err
	}
	v, err := o.versionAt(etagOf(answer.ETag), id)
	if err != nil {
		return lease.Result{}, withoutRefusal(err)
	}
	if !v.grantedTo(id) {
		return lease.Result{}, errNoToken
	}
	o.known.Put(o.name, v)
	return heldResult(id, v.grant), nil
}

func (o operation) release(id lease.ID) (lease.Result, error) {
	answer, err := o.leases.ReleaseLease(o.ctx, nil)
	if err != nil {
		return lease.Result{}, o.errorOf(lease.ActionRelease, err)
	}
	o.breaks.Remove(o.name)
	return newResult(id, lease.Available, o.rememberedGrant(answer.ETag), 0, 0), nil
}

// rememberedGrant returns the grant that the Container remembers for the given ETag, or the zero grant.
func (o operation) rememberedGrant(etag *azcore.ETag) grant {
	if v := o.known.Get(o.name); etag != nil && v.etag == *etag {
		return v.grant
	}
	return grant{}
}

// read reads the blob. If id is not zero, the read succeeds only while the lease is locked under id. If id is
// zero, the result usually has no ID. The exception is a lease that another holder has handed over to this
// process.
func (o operation) read(id lease.ID) (lease.Result, error) {
	v, props, err := o.loadVersion(id)
	switch {
	case err == lease.ErrNotPresent && id.IsZero():
		return newResult(lease.ID{}, lease.Available, grant{}, 0, 0), nil
	case err != nil:
		return lease.Result{}, err
	}
	res := propertiesResult(id, v.grant, props.LeaseState, props.LeaseDuration)
	switch asked := o.asked.Get(v.holder); {
	case res.Record.State == lease.Leased && id.IsZero() && !asked.IsZero():
		// The last token was written for an ID of this process. If this process now holds the lease under
		// that ID, another holder has handed the lease over.
		if ours, err := o.read(asked); err == nil {
			return ours, nil
		}
	case res.Record.State == lease.Breaking:
		res.Record.Until = res.Now.Add(o.breaks.limit(o.name, v, res.MaxRemaining()))
	}
	return res, nil
}

var states = map[azl.StateType]lease.State{
	azl.StateTypeAvailable: lease.Available,
	azl.StateTypeLeased:    lease.Leased,
	azl.StateTypeExpired:   lease.Expired,
	azl.StateTypeBreaking:  lease.Breaking,
	azl.StateTypeBroken:    lease.Broken,
}

// propertiesResult makes a result from the lease properties of a blob, which are the state of the lease and
// the kind of its duration, finite or infinite. The properties do not contain the remaining time.
func propertiesResult(id lease.ID, g grant, state *azl.StateType, kind *azl.DurationType) lease.Result {
	s := lease.Available
	if state != nil {
		s = states[*state]
	}
	infinite := kind != nil && *kind == azl.DurationTypeInfinite
	switch {
	case s == lease.Leased && infinite:
		g.duration = lease.Infinite
		return newResult(id, s, g, lease.Infinite, lease.Infinite)
	case g.duration == 0 || (s == lease.Leased || s == lease.Expired) && g.duration == lease.Infinite:
		g.duration = limits.MaxDuration // the blob has a finite lease, which is not the last grant
	}
	return newResult(id, s, g, 0, min(g.duration, limits.MaxPeriod))
}

// The method write stores the current metadata of the blob again, as [lease.ActionWrite] demands. If id is
// not zero, the write succeeds only while the lease is locked under id.
func (o operation) write(id lease.ID) (lease.Result, error) {
	for range maxTries {
		v, props, err := o.loadVersion(id)
		switch {
		case err == lease.ErrNotPresent && id.IsZero():
			return newResult(id, lease.Available, grant{}, 0, 0), nil // without a blob there is no lease to forget
		case err != nil:
			return lease.Result{}, err
		}
		etag, err := o.storeMetadata(v, id)
		switch {
		case err == nil:
			if v.etag = etag; v.epoch > 0 { // otherwise keep the remembered version, which might have an epoch
				o.known.Put(o.name, v)
			}
			if id.IsZero() {
				return newResult(id, lease.Available, v.grant, 0, 0), nil
			}
			return propertiesResult(id, v.grant, props.LeaseState, props.LeaseDuration), nil
		case serviceCode(err) != codeConditionNotMet:
			return lease.Result{}, o.errorOf(lease.ActionWrite, err)
		}
	}
	return lease.Result{}, o.busyError()
}
