package engine

import (
	"container/heap"
	"time"
)

// soonest is a queue of waiting values, ordered by the time at which each is needed.
type soonest[W placed] struct {
	heap     order[W]
	arrivals uint64
}

// A placed value can wait in a queue of type soonest.
type placed interface{ at() *place }

// A place is the part of a placed value that the queue uses.
type place struct {
	needed  time.Time
	arrival uint64 // decides between values that are needed at the same time: the lower one goes first
	index   int    // the index in the heap, from 1; 0: the value is not in the queue
}

func (p *place) at() *place { return p }

func (s *soonest[W]) len() int { return len(s.heap) }

// add adds w to the queue. Its field needed must be set.
func (s *soonest[W]) add(w W) {
	s.arrivals++
	w.at().arrival = s.arrivals
	heap.Push(&s.heap, w)
}

// first returns the value that is needed first. The queue must not be empty.
func (s *soonest[W]) first() W { return s.heap[0] }

// The method next removes the value that has the earliest time in its field needed, and returns this value.
// The queue must not be empty.
func (s *soonest[W]) next() W { return heap.Pop(&s.heap).(W) }

// The method last removes the value that has the latest time in its field needed, and returns this value. The
// queue must not be empty. Unlike the other methods, this one looks at all values.
func (s *soonest[W]) last() W {
	latest := 0
	for i := range s.heap {
		if s.heap.Less(latest, i) {
			latest = i
		}
	}
	return heap.Remove(&s.heap, latest).(W)
}

// remove removes w from the queue, and reports whether w was there.
func (s *soonest[W]) remove(w W) bool {
	i := w.at().index
	if i > 0 {
		heap.Remove(&s.heap, i-1)
	}
	return i > 0
}

type order[W placed] []W

func (o order[W]) Len() int { return len(o) }

func (o order[W]) Less(i, j int) bool {
	a, b := o[i].at(), o[j].at()
	if c := a.needed.Compare(b.needed); c != 0 {
		return c < 0
	}
	return a.arrival < b.arrival
}

func (o order[W]) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].at().index, o[j].at().index = i+1, j+1
}

func (o *order[W]) Push(x any) {
	w := x.(W)
	*o = append(*o, w)
	w.at().index = len(*o)
}

func (o *order[W]) Pop() any {
	last := len(*o) - 1
	w := (*o)[last]
	(*o)[last] = *new(W)
	*o = (*o)[:last]
	w.at().index = 0
	return w
}
