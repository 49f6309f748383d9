package azlease

import (
	"sync"
	"time"

	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// breakIn breaks the lease after the period p. The answer may report no remaining time although p is
// not zero. In that case, breakIn reads the blob to find out whether the lease is still breaking.
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
			state = lease.Broken // another holder may have acquired the lease since
		}
		most = time.Second
	}
	return result(lease.ID{}, state, o.last(answer.ETag), least, most), nil
}

// left returns the least and the most time for which a lease stays locked. It computes both from the
// answer to a break. The service documents the time in its answer as approximate. The service drops
// fractions of a second, and the emulator Azurite rounds them. If the break had a period, the lease
// stays locked for at most that period.
func left(answered int32, p lease.Period) (least, most time.Duration) {
	t := time.Duration(answered) * time.Second
	least, most = max(0, t-time.Second), t+time.Second
	if period, given := p.Get(); given {
		most = min(most, whole(period))
	}
	return least, most
}

// breaking returns the remaining time of a lease that cannot be renewed because it was broken. The
// service reports the remaining time only in the answer to a break. To learn the remaining time,
// breaking sends another break with the longest allowed period. A break period has no effect if it is
// longer than the remaining time.
//
// The lease was breaking under id a moment ago, but a new holder may have acquired the lease since.
// When the new holder writes its token, the ETag of the blob changes, and the service refuses the
// break. If the new holder has not written its token yet, the break applies to the lease of the new
// holder. That lease then lasts for another minute at most.
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
	least, most := o.breaks.remaining(o.name, digest(id), *answer.LeaseTime, asked)
	return result(id, lease.Breaking, v.grant, least, most)
}

// breaks remembers the remaining times that the service reported for breaks. The service reports whole
// seconds, so two answers that are 0.1 s apart can differ by a second. Without a record of earlier
// answers, a holder would lose up to a second of its grace period at each renewal. The holder would
// also be warned of the break again at each renewal.
type breaks struct {
	most int

	mu sync.Mutex
	m  map[string]lockedTime
}

// A lockedTime holds the known bounds of the time at which a broken lease ends.
type lockedTime struct {
	holder      string
	least, most time.Time // the lease ends no earlier than least, and no later than most
}

// remaining returns the least and the most time that is left of a break. The argument seconds is the
// answer of the service to a request that was sent at the time asked. If the new answer is consistent
// with the bounds of earlier answers, these bounds do not become earlier.
func (b *breaks) remaining(name, holder string, seconds int32, asked time.Time) (least, most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	least, most = left(seconds, lease.Grace(limits.MaxPeriod))
	t := lockedTime{holder, asked.Add(least), now.Add(most)}
	if last, known := b.m[name]; known && last.holder == holder {
		// The service drops fractions of a second, so the lease is locked for at least this many seconds.
		if !last.least.After(asked.Add(time.Duration(seconds) * time.Second)) {
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
		b.m = map[string]lockedTime{}
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

// forget deletes the entry of a lease that was released or acquired again.
func (b *breaks) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, name)
}
