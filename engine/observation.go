package engine

import (
	"container/list"
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// An observation contains what a Store knows about a name: the newest entry that the Backend has returned,
// and the earliest and the latest time at which the state in this entry can end. All times are elapsed times
// of the Store's clock.
type observation struct {
	Entry
	nextAfter time.Duration // no later entry was committed before this time
	at        time.Duration // when this entry was recorded; a request that is sent later returns no older entry
	high      time.Duration // the state ends at this time at the latest
	own       bool          // whether this Store has written the entry, in the state Leased

	// If no clock drifts, the state of the lease ends at lowStart+lowLeft or later. If clocks may drift,
	// leftAtLeast computes an earlier time. If lowLeft is 0, there is no lower bound.
	lowStart, lowLeft time.Duration
}

// newUnaged returns an observation without a lower bound, for an entry whose commit time is unknown.
func newUnaged(e Entry, nextAfter, now time.Duration) observation {
	return observation{Entry: e, nextAfter: nextAfter, at: now, high: add(now, e.Left), lowStart: now}
}

// newAged returns an observation of an entry. The parameter earliest is the earliest time at which the entry
// may have been committed.
func newAged(e Entry, nextAfter, now, earliest time.Duration) observation {
	return observation{Entry: e, nextAfter: nextAfter, at: now, high: add(now, e.Left), lowStart: earliest, lowLeft: e.Left}
}

// When the Store has read a newer entry, mergedWith computes the new observation of the name. The parameter
// next is the observation of the newer entry alone. If both records are Breaking with the same ID and Epoch,
// both breaks belong to the same term of the lease, and a break can only shorten it. The result then has the
// earlier of the two upper bounds, and also the earlier of the two lower bounds. Otherwise the result is the
// observation of the newer entry.
func (old *observation) mergedWith(next observation, c *stopwatch) observation {
	a, b := old.Record, next.Record
	if a.State == lease.Breaking && b.State == lease.Breaking && a.ID == b.ID && a.Epoch == b.Epoch {
		next.high = min(old.high, next.high)
		if now := max(old.lowStart, next.lowStart); old.leftAtLeast(c, now) < next.leftAtLeast(c, now) {
			next.lowStart, next.lowLeft = old.lowStart, old.lowLeft
		}
	}
	return next
}

// leftAtLeast returns the shortest time that can be left until the state of the lease ends. The last
// parameter is the elapsed time from which this time is counted. The result holds even if another clock runs
// faster than c, provided that both stay within [Options.MaxClockDrift]. If the observation has no lower
// bound, the result is zero or negative.
func (o *observation) leftAtLeast(c *stopwatch, now time.Duration) time.Duration {
	return o.lowLeft - c.maxElsewhere(now-o.lowStart)
}

func (o *observation) snapshot(c *stopwatch, now time.Duration) lease.Snapshot {
	snap := lease.Snapshot{Record: o.Record, Version: o.Version, Now: c.PointAt(now)}
	if o.ends() {
		snap.Record.Until = c.PointAt(o.high)
		snap.Uncertainty = max(0, o.high-now-o.leftAtLeast(c, now))
	}
	return snap
}

// add returns t+d, or the longest Duration if the sum overflows.
func add(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// An observations value stores one observation for each of a limited number of names. Pinned names do
// not count towards the limit, and are never removed.
type observations struct {
	most   int // the largest number of names that are not pinned
	byName map[string]*named
	recent *list.List     // the *named that are not pinned; the most recently used one is first
	pins   map[string]int // maps a name to its number of pins
}

// A named is the observation of one name.
type named struct {
	name string
	observation
	place *list.Element // the place in the list of recent names; nil if the name is pinned
}

func newObservations(most int) observations {
	return observations{most, map[string]*named{}, list.New(), map[string]int{}}
}

// isFull reports whether the limit is reached, so that a new name displaces another one.
func (s *observations) isFull() bool { return s.recent.Len() >= s.most }

// get returns the observation of a name, or nil. If touch is true, the name counts as used most recently.
func (s *observations) get(name string, touch bool) *observation {
	n := s.byName[name]
	if n == nil {
		return nil
	}
	if touch && n.place != nil {
		s.recent.MoveToFront(n.place)
	}
	return &n.observation
}

// The method put adds the observation of a new name. If the limit of names is exceeded, the method drops the
// least recently used name.
func (s *observations) put(name string, o observation) *observation {
	n := &named{name: name, observation: o}
	s.byName[name] = n
	if s.pins[name] == 0 {
		s.markUsed(n)
	}
	return &n.observation
}

// markUsed makes a name the most recently used one. The name must not be pinned. If the limit of names is
// exceeded, markUsed drops the least recently used name.
func (s *observations) markUsed(n *named) {
	if s.isFull() {
		oldest := s.recent.Back()
		delete(s.byName, s.recent.Remove(oldest).(*named).name)
	}
	n.place = s.recent.PushFront(n)
}

// pin prevents the removal of a name. Each call of pin needs one call of unpin.
func (s *observations) pin(name string) {
	s.pins[name]++
	if n := s.byName[name]; n != nil && n.place != nil {
		s.recent.Remove(n.place)
		n.place = nil
	}
}

// unpin undoes one call of pin.
func (s *observations) unpin(name string) {
	if s.pins[name]--; s.pins[name] > 0 {
		return
	}
	delete(s.pins, name)
	if n := s.byName[name]; n != nil {
		s.markUsed(n)
	}
}
