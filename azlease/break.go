package azlease

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// breakIn breaks the lease with the period p. If the answer of the service has a remaining time above zero,
// the lease is now breaking. If the answer has no remaining time, and p is shorter than a second, the lease
// is now broken. Otherwise breakIn reads the blob to find out whether the lease is still breaking.
func (o operation) breakIn(p lease.Period) (lease.Result, error) {
	options := &azl.BlobBreakOptions{}
	period, given := p.Get()
	if given {
		seconds := int32(period / time.Second)
		options.BreakPeriod = &seconds
	}
	answer, err := o.leases.BreakLease(o.ctx, options)
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
			state = lease.Broken // another holder might have acquired the lease in the meantime
		}
		most = time.Second
	}
	g := o.rememberedGrant(answer.ETag)
	if state == lease.Breaking {
		o.breaks.limit(o.name, version{etag: etagOf(answer.ETag), metadata: metadata{grant: g}}, most)
	}
	return newResult(lease.ID{}, state, g, least, most), nil
}

// lockedBounds returns the shortest and the longest time for which a lease can stay locked after a break with
// period p. The parameter leaseTime is the remaining time, in seconds, in the answer to the break. The
// documentation calls this time approximate: the service truncates it to whole seconds, and the emulator
// Azurite rounds it. After a break with a period, the lease stays locked for at most that period.
func lockedBounds(leaseTime int32, p lease.Period) (least, most time.Duration) {
	t := time.Duration(leaseTime) * time.Second
	least, most = max(0, t-time.Second), t+time.Second
	if period, given := p.Get(); given {
		most = min(most, whole(period))
	}
	return least, most
}

// remainingAfterBreak returns the remaining time of a lease that cannot be renewed because it was broken. The
// service reports that time only in the answer to a break, so remainingAfterBreak sends another break. This
// second break has the longest allowed period, so that it does not shorten the lease: a break shortens a
// lease only if its period is shorter than the remaining time.
//
// The second break is sent only after a read of the blob has shown that the lease is breaking. However, a new
// holder can acquire the lease between the read and the break. If the new holder has already written its
// token, the ETag of the blob has changed, and the service refuses the break. If the new holder has not
// written its token, the service breaks the lease of the new holder. That lease then ends within a minute,
// and the answer to the break contains the remaining time of the new holder's lease. To detect such a wrong
// answer, remainingAfterBreak reads the blob once more with id as the lease ID. This read succeeds only if id
// still holds the lease. In that case, id also held the lease during the break, because no holder can acquire
// a breaking lease.
func (o operation) remainingAfterBreak(id lease.ID) lease.Result {
	v, props, err := o.loadVersion(id)
	if err != nil || props.LeaseState == nil || *props.LeaseState != azl.StateTypeBreaking {
		return lease.Result{}
	}
	longest := int32(limits.MaxPeriod / time.Second)
	sentAt := time.Now()
	answer, err := o.leases.BreakLease(o.ctx, &azl.BlobBreakOptions{BreakPeriod: &longest, ModifiedAccessConditions: &azl.ModifiedAccessConditions{IfMatch: &v.etag}})
	if err != nil || answer.LeaseTime == nil {
		return lease.Result{}
	}
	if _, _, err := o.loadVersion(id); err != nil {
		return lease.Result{}
	}
	least, most := o.breaks.addAnswer(o.name, digest(id), *answer.LeaseTime, sentAt)
	return newResult(id, lease.Breaking, v.grant, least, most)
}

// A breakTable stores, for each broken lease, the earliest and the latest time at which the lease can end. A
// breakTable computes both times from several answers of the service. Two answers that are 0.1 s apart can
// differ by a second, because the service rounds the remaining time to whole seconds. If a breakTable used
// only the newest answer, a renewal could report an end that is up to a second earlier than the end that the
// holder already knows. The holder would then lose up to a second of its grace period, and get another
// warning of the same break.
//
// When a lease was released, or when a holder has acquired it again, its entry must be removed.
type breakTable struct{ engine.Cache[lockedTime] }

// A lockedTime contains the earliest and the latest time at which a broken lease can end.
type lockedTime struct {
	holder      string      // the digest of the lease ID; may be empty if the ETag of the blob is known
	etag        azcore.ETag // of the blob; empty if only the holder is known
	least, most time.Time   // the earliest and the latest time at which the lease can end
}

// addAnswer returns the shortest and the longest time for which a broken lease can stay locked. The parameter
// leaseTime is the remaining time in seconds, as the service has reported it. The parameter sentAt is the
// time at which this process sent the request to the service. Each of the two bounds is the latest time that
// any answer has given. However, addAnswer ignores an earlier answer if that answer contradicts the new
// answer.
func (b *breakTable) addAnswer(name, holder string, leaseTime int32, sentAt time.Time) (least, most time.Duration) {
	now := time.Now()
	least, most = lockedBounds(leaseTime, lease.Grace(limits.MaxPeriod))
	t := lockedTime{holder, "", sentAt.Add(least), now.Add(most)}
	b.Change(name, func(last lockedTime) lockedTime {
		if last.holder != holder {
			return t
		}
		// The service truncates the remaining time, so the lease stays locked for at least leaseTime seconds.
		if !last.least.After(sentAt.Add(time.Duration(leaseTime) * time.Second)) {
			t.least = later(t.least, last.least)
		}
		if last.most.Before(t.most.Add(2 * time.Second)) {
			t.most = later(t.most, last.most)
		}
		return t
	})
	return max(0, t.least.Sub(sentAt)), t.most.Sub(now)
}

// limit returns the longest time for which a breaking lease can stay locked. The parameter v is the version
// of the blob. The last parameter is the upper bound that follows from the newest answer. This bound can be
// too high, because the answer to a read does not contain the remaining time. If an earlier answer for the
// same holder or ETag has shown that the lease ends sooner, limit returns the time from now until that sooner
// end.
func (b *breakTable) limit(name string, v version, most time.Duration) time.Duration {
	now := time.Now()
	end := now.Add(most)
	b.Change(name, func(last lockedTime) lockedTime {
		same := v.holder != "" && last.holder == v.holder || v.etag != "" && last.etag == v.etag
		if !same || !last.most.After(now) {
			return lockedTime{holder: v.holder, etag: v.etag, most: end}
		}
		if last.most.Before(end) {
			end = last.most
		}
		last.etag, last.most = v.etag, end
		return last
	})
	return end.Sub(now)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
