package azlease

import (
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// read reads the blob, under the lease of id unless that is zero.
func (o operation) read(id lease.ID) (lease.Result, error) {
	v, props, err := o.load(id)
	switch {
	case err == lease.ErrNotPresent && id.IsZero():
		return result(lease.ID{}, lease.Available, grant{}, 0, 0), nil
	case err != nil:
		return lease.Result{}, err
	}
	return seen(id, v.grant, props.LeaseState, props.LeaseDuration), nil
}

var states = map[azl.StateType]lease.State{
	azl.StateTypeAvailable: lease.Available,
	azl.StateTypeLeased:    lease.Leased,
	azl.StateTypeExpired:   lease.Expired,
	azl.StateTypeBreaking:  lease.Breaking,
	azl.StateTypeBroken:    lease.Broken,
}

// seen returns the result for properties of a blob. They do not tell how much time is left.
func seen(id lease.ID, g grant, state *azl.StateType, kind *azl.DurationType) lease.Result {
	s := lease.Available
	if state != nil {
		s = states[*state]
	}
	infinite := kind != nil && *kind == azl.DurationTypeInfinite
	switch {
	case s == lease.Leased && infinite:
		g.duration = lease.Infinite
		return result(id, s, g, lease.Infinite, lease.Infinite)
	case g.duration == 0 || s.Renewable() && g.duration == lease.Infinite:
		g.duration = limits.MaxDuration // the last grant is not the one in force, which is finite
	}
	return result(id, s, g, 0, min(g.duration, limits.MaxPeriod))
}

// write writes the metadata as it is, under the lease of id unless that is zero.
func (o operation) write(id lease.ID) (lease.Result, error) {
	for range tries {
		v, props, err := o.load(id)
		switch {
		case err == lease.ErrNotPresent && id.IsZero():
			return result(id, lease.Available, grant{}, 0, 0), nil // there is nothing to forget
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
				return result(id, lease.Available, v.grant, 0, 0), nil
			}
			return seen(id, v.grant, props.LeaseState, props.LeaseDuration), nil
		case serviceCode(err) != codeConditionNotMet:
			return lease.Result{}, o.failed(lease.ActionWrite, err)
		}
	}
	return lease.Result{}, o.busy()
}
