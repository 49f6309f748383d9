package observe

import (
	"container/list"
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// A sight is the last observation of a name. Its times are elapsed times of the Store's clock.
type sight struct {
	Entry
	sent time.Duration // the latest sending of an exchange that showed this entry
	high time.Duration // the state ends no later, for this observer

	// The state ends for no process before sure has passed since from.
	from, sure time.Duration
}

// first returns the sight of an entry of unknown age. No lower bound is known.
func first(e Entry, sent, now time.Duration) sight {
	return sight{Entry: e, sent: sent, high: add(now, e.Left), from: now}
}

// since returns the sight of an entry that was committed between from and now.
func since(from time.Duration, e Entry, sent, now time.Duration) sight {
	return sight{Entry: e, sent: sent, high: add(now, e.Left), from: from, sure: e.Left}
}

// shortened returns the sight n, which follows l. Of two breaks of one (ID, Epoch) the earlier end
// counts.
func (l *sight) shortened(n sight, c *clock) sight {
	a, b := l.Record, n.Record
	if a.State == lease.Breaking && b.State == lease.Breaking && a.ID == b.ID && a.Epoch == b.Epoch {
		n.high = min(l.high, n.high)
		if now := max(l.from, n.from); l.certain(c, now) < n.certain(c, now) {
			n.from, n.sure = l.from, l.sure
		}
	}
	return n
}

// certain returns how long after now the state lasts at least. It is negative if no lower bound is
// known. The clock that ends the state may be faster than this one.
func (l *sight) certain(c *clock, now time.Duration) time.Duration {
	return l.sure - c.most(now-l.from)
}

// snapshot returns the sight as a Snapshot at now.
func (l *sight) snapshot(c *clock, now time.Duration) lease.Snapshot {
	snap := lease.Snapshot{Record: l.Record, Version: l.Version, Now: c.time(now)}
	if l.ends() {
		snap.Record.Until = c.time(l.high)
		snap.Uncertainty = max(0, l.high-now-l.certain(c, now))
	}
	return snap
}

func add(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// sights are the sights of a bounded number of names, and of all names that are pinned.
type sights struct {
	most   int
	byName map[string]*named
	recent *list.List     // of *named that are not pinned, the most recently used first
	pins   map[string]int // by name, how often it is pinned
}

type named struct {
	name string
	sight
	place *list.Element // nil: it is pinned
}

func newSights(most int) sights {
	return sights{most, map[string]*named{}, list.New(), map[string]int{}}
}

// full reports whether another name must be forgotten for the next one.
func (s *sights) full() bool { return s.recent.Len() >= s.most }

// get returns the sight of a name, or nil. If used is true, the name becomes the most recently used
// one.
func (s *sights) get(name string, used bool) *sight {
	n := s.byName[name]
	if n == nil {
		return nil
	}
	if used && n.place != nil {
		s.recent.MoveToFront(n.place)
	}
	return &n.sight
}

// put adds the sight of a new name, and forgets another name if there are too many.
func (s *sights) put(name string, l sight) *sight {
	n := &named{name: name, sight: l}
	s.byName[name] = n
	if s.pins[name] == 0 {
		s.use(n)
	}
	return &n.sight
}

// use makes a name that is not pinned the most recently used one, and forgets another if there are
// too many.
func (s *sights) use(n *named) {
	if s.full() {
		oldest := s.recent.Back()
		delete(s.byName, s.recent.Remove(oldest).(*named).name)
	}
	n.place = s.recent.PushFront(n)
}

// pin keeps a name from being forgotten, until unpin was called as often.
func (s *sights) pin(name string) {
	s.pins[name]++
	if n := s.byName[name]; n != nil && n.place != nil {
		s.recent.Remove(n.place)
		n.place = nil
	}
}

func (s *sights) unpin(name string) {
	if s.pins[name]--; s.pins[name] > 0 {
		return
	}
	delete(s.pins, name)
	if n := s.byName[name]; n != nil {
		s.use(n)
	}
}
