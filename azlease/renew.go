package azlease

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

// renew starts the duration of the lease again. Usually this takes one request. If the blob was
// written since this Container last read it, a second request reads the metadata again.
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
	return held(id, v.grant), nil
}

// release releases the lease.
func (o operation) release(id lease.ID) (lease.Result, error) {
	client, err := o.leaseClient(o.name, id)
	if err != nil {
		return lease.Result{}, err
	}
	answer, err := client.ReleaseLease(o.ctx, nil)
	if err != nil {
		return lease.Result{}, o.failed(lease.ActionRelease, err)
	}
	o.breaks.forget(o.name)
	return result(id, lease.Available, o.last(answer.ETag), 0, 0), nil
}

// last returns the last grant if the Container remembers it for this ETag.
func (o operation) last(etag *azcore.ETag) grant {
	if v := o.known.get(o.name); etag != nil && v.etag == *etag {
		return v.grant
	}
	return grant{}
}
