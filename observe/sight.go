package observe

import (
	"container/list"
	"math"
	"time"

	"github.com/fencedlease/lease"
)

// A sight is what was last seen under a name. Its times are elapsed time of the Store's
// clock.
type sight struct {
	Entry
	sent time.Duration // the latest sending of an exchange that showed this entry
	high time.Duration // the state ends no later, for this observer

	// For nobody does the state end before sure has passed since from.
	from, sure time.Duration
}

// first is the sight of an entry of which nobody knows how old it is: nothing is certain.
func first(e Entry, sent, now time.Duration) sight {
	return sight{Entry: e, sent: sent, high: add(now, e.Left), from: now}
}

// since is the sight of an entry that was committed after from, and before now.
func since(from time.Duration, e Entry, sent, now time.Duration) sight {
	return sight{Entry: e, sent: sent, high: add(now, e.Left), from: from, sure: e.Left}
}

// shortened is n, after l: for one (ID, Epoch) the end of a break only ever moves earlier.
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

// certain is how long after now the state lasts at least; negative if nothing is certain. The
// clock that ends it may be faster than the one that counts here.
func (l *sight) certain(c *clock, now time.Duration) time.Duration {
	return l.sure - c.most(now-l.from)
}

// snapshot shows the sight at now.
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

// sights are the last sights of a bounded number of names, and of those that are pinned.
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

// full reports whether the next name takes the place of another.
func (s *sights) full() bool { return s.recent.Len() >= s.most }

// get returns the last sight under a name, or nil. A name that is used becomes the most recently
// used one.
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

// put keeps the first sight under a name, and forgets another if there are too many.
func (s *sights) put(name string, l sight) *sight {
	n := &named{name: name, sight: l}
	s.byName[name] = n
	if s.pins[name] == 0 {
		s.use(n)
	}
	return &n.sight
}

// use makes a name that is not pinned the most recently used one. It takes the place of another if
// there are too many.
func (s *sights) use(n *named) {
	if s.full() {
		oldest := s.recent.Back()
		delete(s.byName, s.recent.Remove(oldest).(*named).name)
	}
	n.place = s.recent.PushFront(n)
}

// pin keeps the sight of a name from being forgotten until it is unpinned as often.
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
