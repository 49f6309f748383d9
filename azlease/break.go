package azlease

import (
	"sync"
	"time"

	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
)

// breakIn breaks the lease after the period p. If the answer reports no remaining time although p is
// not zero, breakIn reads the blob to find out whether the lease is still breaking.
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
		return lease.Result{}, o.errorOf(lease.ActionBreak, err)
	}
	least, most, state := time.Duration(0), time.Duration(0), lease.Breaking
	switch {
	case answer.LeaseTime != nil && *answer.LeaseTime > 0:
		least, most = lockedBounds(*answer.LeaseTime, p)
	case given && whole(period) == 0:
		state = lease.Broken
	default:
		if _, props, err := o.loadVersion(lease.ID{}); err != nil {
			return lease.Result{}, withoutRefusal(err)
		} else if props.LeaseState == nil || *props.LeaseState != azl.StateTypeBreaking {
			state = lease.Broken // another holder may have acquired the lease since
		}
		most = time.Second
	}
	return newResult(lease.ID{}, state, o.rememberedGrant(answer.ETag), least, most), nil
}

// lockedBounds returns the shortest and the longest time for which a lease may stay locked after a
// break. The argument answered is the remaining time that the service reported in its answer to the
// break, in seconds. The service documents this remaining time as approximate. The service drops
// fractions of a second, and the emulator Azurite rounds them. If the break had a period, the lease
// stays locked for at most that period.
func lockedBounds(answered int32, p lease.Period) (least, most time.Duration) {
	t := time.Duration(answered) * time.Second
	least, most = max(0, t-time.Second), t+time.Second
	if period, given := p.Get(); given {
		most = min(most, whole(period))
	}
	return least, most
}

// remainingAfterBreak returns the remaining time of a lease that cannot be renewed because it was
// broken. The service reports the remaining time only in the answer to a break. To learn the remaining
// time, remainingAfterBreak sends another break with the longest allowed period. A second break with
// that period never shortens the lease, because the remaining time is at most that period.
//
// The lease was breaking under id a moment ago, but a new holder may have acquired the lease since.
// When the new holder writes its token, the ETag of the blob changes, and the service refuses the
// break. If the new holder has not written its token yet, the break applies to the lease of the new
// holder, which then lasts for another minute at most, and the answer is not about the lease of id. So
// remainingAfterBreak reads the blob once more. No holder can acquire a breaking lease. So if id is in
// force after the answer, it was in force at the break.
func (o operation) remainingAfterBreak(client *azl.BlobClient, id lease.ID) lease.Result {
	v, props, err := o.loadVersion(id)
	if err != nil || props.LeaseState == nil || *props.LeaseState != azl.StateTypeBreaking {
		return lease.Result{}
	}
	longest := int32(limits.MaxPeriod / time.Second)
	asked := time.Now()
	answer, err := client.BreakLease(o.ctx, &azl.BlobBreakOptions{BreakPeriod: &longest, ModifiedAccessConditions: &azl.ModifiedAccessConditions{IfMatch: &v.etag}})
	if err != nil || answer.LeaseTime == nil {
		return lease.Result{}
	}
	if _, _, err := o.loadVersion(id); err != nil {
		return lease.Result{}
	}
	least, most := o.breaks.addAnswer(o.name, digest(id), *answer.LeaseTime, asked)
	return newResult(id, lease.Breaking, v.grant, least, most)
}

// A breakTimes remembers the remaining time that the service reported for each broken lease. The
// service reports whole seconds, so two answers that are 0.1 s apart can differ by a second. Without
// the earlier answers, a holder could lose up to a second of its grace period at each renewal. The
// holder could also get a new warning of the same break at each renewal.
type breakTimes struct {
	most int

	mu sync.Mutex
	m  map[string]lockedTime
}

// A lockedTime holds the known bounds of the time at which a broken lease ends.
type lockedTime struct {
	holder      string
	least, most time.Time // the lease ends no earlier than least, and no later than most
}

// addAnswer returns the shortest and the longest time for which a broken lease may stay locked. The
// argument seconds is the remaining time that the service reported, and asked is the time at which the
// request was sent. If the new answer is consistent with earlier answers, addAnswer does not move the
// known bounds to earlier times.
func (b *breakTimes) addAnswer(name, holder string, seconds int32, asked time.Time) (least, most time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	least, most = lockedBounds(seconds, lease.Grace(limits.MaxPeriod))
	t := lockedTime{holder, asked.Add(least), now.Add(most)}
	if last, known := b.m[name]; known && last.holder == holder {
		// The service drops fractions of a second, so the lease stays locked for at least the reported
		// number of seconds.
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

// deleteEntry deletes the entry of a lease that was released or acquired again.
func (b *breakTimes) deleteEntry(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.m, name)
}
