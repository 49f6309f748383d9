package observe

import (
	"container/list"
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// An observation is the last entry that the Store saw for a name, with a lower and an upper bound of
// the end of its state. All times are elapsed times of the Store's clock.
type observation struct {
	Entry
	sent time.Duration // when the last request that returned this entry was sent
	high time.Duration // the state ends at this time at the latest

	// The state lasts at least until the duration sure has passed since the time from.
	from, sure time.Duration
}

// first returns the observation of an entry whose age is unknown. Such an observation has no lower
// bound.
func first(e Entry, sent, now time.Duration) observation {
	return observation{Entry: e, sent: sent, high: add(now, e.Left), from: now}
}

// since returns the observation of an entry that was committed at some time between from and now.
func since(from time.Duration, e Entry, sent, now time.Duration) observation {
	return observation{Entry: e, sent: sent, high: add(now, e.Left), from: from, sure: e.Left}
}

// shortened returns the observation n, which is newer than l. If both observations have a break of
// the same ID and Epoch, the result has the earlier end of the two.
func (l *observation) shortened(n observation, c *clock) observation {
	a, b := l.Record, n.Record
	if a.State == lease.Breaking && b.State == lease.Breaking && a.ID == b.ID && a.Epoch == b.Epoch {
		n.high = min(l.high, n.high)
		if now := max(l.from, n.from); l.certain(c, now) < n.certain(c, now) {
			n.from, n.sure = l.from, l.sure
		}
	}
	return n
}

// certain returns the minimum time for which the state lasts after now. The result allows for another
// clock that runs faster than this one. Without a lower bound, the result is not positive.
func (l *observation) certain(c *clock, now time.Duration) time.Duration {
	return l.sure - c.most(now-l.from)
}

// snapshot returns the observation as a [lease.Snapshot] at the time now.
func (l *observation) snapshot(c *clock, now time.Duration) lease.Snapshot {
	snap := lease.Snapshot{Record: l.Record, Version: l.Version, Now: c.time(now)}
	if l.ends() {
		snap.Record.Until = c.time(l.high)
		snap.Uncertainty = max(0, l.high-now-l.certain(c, now))
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

// observations stores the last observation of each of a bounded number of names. Pinned names do not
// count, and they are never forgotten.
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

// full reports whether a name must be forgotten before another one can be added.
func (s *observations) full() bool { return s.recent.Len() >= s.most }

// get returns the observation of a name, or nil if there is none. If used is true, the name becomes
// the most recently used one.
func (s *observations) get(name string, used bool) *observation {
	n := s.byName[name]
	if n == nil {
		return nil
	}
	if used && n.place != nil {
		s.recent.MoveToFront(n.place)
	}
	return &n.observation
}

// put adds the observation of a new name. If there are too many names, put forgets the least recently
// used one.
func (s *observations) put(name string, l observation) *observation {
	n := &named{name: name, observation: l}
	s.byName[name] = n
	if s.pins[name] == 0 {
		s.use(n)
	}
	return &n.observation
}

// use makes a name the most recently used one. The name must not be pinned. If there are too many
// names, use forgets the least recently used one.
func (s *observations) use(n *named) {
	if s.full() {
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
		s.use(n)
	}
}
