package azlease

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

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
	o.known.put(o.name, v)
	return heldResult(id, v.grant), nil
}

func (o operation) release(id lease.ID) (lease.Result, error) {
	answer, err := o.leases.ReleaseLease(o.ctx, nil)
	if err != nil {
		return lease.Result{}, o.errorOf(lease.ActionRelease, err)
	}
	o.breaks.remove(o.name)
	return newResult(id, lease.Available, o.rememberedGrant(answer.ETag), 0, 0), nil
}

// rememberedGrant returns the grant that the Container remembers for the given ETag, or the zero grant.
func (o operation) rememberedGrant(etag *azcore.ETag) grant {
	if v := o.known.get(o.name); etag != nil && v.etag == *etag {
		return v.grant
	}
	return grant{}
}
