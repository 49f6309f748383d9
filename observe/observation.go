package observe

import (
	"container/list"
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// An observation is the newest entry that the Store has seen for a name. It also has a lower and an
// upper bound of the time at which the state of the entry ends. All times are elapsed times of the
// Store's clock.
type observation struct {
	Entry
	sent time.Duration // when the last request that returned this entry was sent
	at   time.Duration // when this entry was recorded; a request that is sent later returns no older entry
	high time.Duration // the state ends at this time at the latest

	// The state lasts at least for the duration lowLeft after the time lowStart.
	lowStart, lowLeft time.Duration
}

// newUnaged returns an observation of an entry whose age is unknown. Such an observation has no lower
// bound.
func newUnaged(e Entry, sent, now time.Duration) observation {
	return observation{Entry: e, sent: sent, at: now, high: add(now, e.Left), lowStart: now}
}

// newAged returns an observation of an entry that was committed at some time between earliest and
// now.
func newAged(earliest time.Duration, e Entry, sent, now time.Duration) observation {
	return observation{Entry: e, sent: sent, at: now, high: add(now, e.Left), lowStart: earliest, lowLeft: e.Left}
}

// replacedBy returns the observation n, which is newer than l. If l and n are breaks with the same ID
// and Epoch, the result has the earlier of their two ends.
func (l *observation) replacedBy(n observation, c *clock) observation {
	a, b := l.Record, n.Record
	if a.State == lease.Breaking && b.State == lease.Breaking && a.ID == b.ID && a.Epoch == b.Epoch {
		n.high = min(l.high, n.high)
		if now := max(l.lowStart, n.lowStart); l.leftAtLeast(c, now) < n.leftAtLeast(c, now) {
			n.lowStart, n.lowLeft = l.lowStart, l.lowLeft
		}
	}
	return n
}

// leftAtLeast returns the minimum time for which the state lasts after now. The result allows for
// other clocks that run faster than this one. If the observation has no lower bound, the result is
// not positive.
func (l *observation) leftAtLeast(c *clock, now time.Duration) time.Duration {
	return l.lowLeft - c.maxElsewhere(now-l.lowStart)
}

// snapshot converts the observation to a [lease.Snapshot] at the time now.
func (l *observation) snapshot(c *clock, now time.Duration) lease.Snapshot {
	snap := lease.Snapshot{Record: l.Record, Version: l.Version, Now: c.pointAt(now)}
	if l.ends() {
		snap.Record.Until = c.pointAt(l.high)
		snap.Uncertainty = max(0, l.high-now-l.leftAtLeast(c, now))
	}
	return snap
}

// add returns t+d. If the sum overflows, it returns the longest Duration.
func add(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// observations stores one observation for each name. The number of names is bounded, except for
// pinned names, which are never forgotten.
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

// isFull reports whether a name must be forgotten before a new name can be added.
func (s *observations) isFull() bool { return s.recent.Len() >= s.most }

// get returns the observation of a name, or nil if there is none. If touch is true, the name becomes
// the most recently used name.
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

// put adds the observation of a new name. If there are too many names, the least recently used name
// is forgotten.
func (s *observations) put(name string, l observation) *observation {
	n := &named{name: name, observation: l}
	s.byName[name] = n
	if s.pins[name] == 0 {
		s.markUsed(n)
	}
	return &n.observation
}

// markUsed makes a name the most recently used name. The name must not be pinned. If there are too
// many names, the least recently used name is forgotten.
func (s *observations) markUsed(n *named) {
	if s.isFull() {
		oldest := s.recent.Back()
		delete(s.byName, s.recent.Remove(oldest).(*named).name)
	}
	n.place = s.recent.PushFront(n)
}

// pin pins a name, so that the name is not forgotten. Each call of pin needs one call of unpin.
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
