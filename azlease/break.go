package azlease

import (
	"sync"
	"time"

	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// breakIn breaks the lease in a period. If the answer does not tell whether the lease is still breaking, a read
// does.
func (o operation) breakIn(p lease.Period) (lease.Result, error) {
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
	return result(lease.ID{}, state, o.last(answer.ETag), least, most), nil
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
	asked := time.Now()
	answer, err := client.BreakLease(o.ctx, &azl.BlobBreakOptions{BreakPeriod: &longest, ModifiedAccessConditions: &azl.ModifiedAccessConditions{IfMatch: &v.etag}})
	if err != nil || answer.LeaseTime == nil {
		return lease.Result{}
	}
	least, most := o.breaks.told(o.name, digest(id), *answer.LeaseTime, asked)
	return result(id, lease.Breaking, v.grant, least, most)
}

// breaks remembers what the service told of breaks. It tells whole seconds, so that of two answers about
// one break the second may show up to a second less than has passed. Without a memory a holder would
// give away a second at each renewal, and would be warned again each time.
type breaks struct {
	most int

	mu sync.Mutex
	m  map[string]told
}

// told is what is known of one break.
type told struct {
	holder      string
	least, most time.Time // the lease stays locked until least, and until most at most
}

// told returns the bounds of the time that is left of a break, from the answer in seconds to a question
// that was asked at that time. It keeps to what it returned before as long as the answer allows that.
func (b *breaks) told(name, holder string, seconds int32, asked time.Time) (least, most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	least, most = left(seconds, lease.Grace(limits.MaxPeriod))
	t := told{holder, asked.Add(least), now.Add(most)}
	if last, known := b.m[name]; known && last.holder == holder {
		if !last.least.After(asked.Add(time.Duration(seconds) * time.Second)) { // a certain time, since seconds are cut off
			t.least = later(t.least, last.least)
		}
		if last.most.Before(t.most.Add(2 * time.Second)) {
			t.most = later(t.most, last.most)
		}
	}
	if _, known := b.m[name]; !known && len(b.m) >= b.most {
		clear(b.m)
	}
	if b.m == nil {
		b.m = map[string]told{}
	}
	b.m[name] = t
	return max(0, t.least.Sub(asked)), t.most.Sub(now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// forget forgets the break of a lease that was released or granted again.
func (b *breaks) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, name)
}
