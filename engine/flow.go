package engine

import (
	"container/heap"
	"container/list"
	"time"
)

// A flow decides which requests are under way. It reads no clock, and the caller holds a lock.
type flow struct {
	most     int
	limit    float64 // of the requests under way; at most most
	underWay int
	arrivals uint64
	urgent   soonest   // those that wait
	other    list.List // of *waiter, in the order of arrival

	took     time.Duration // the usual time from sending to the answer
	answered time.Time     // the last answer
	cut      time.Time     // when the limit was cut
}

func newFlow(most int) flow { return flow{most: most, limit: float64(most)} }

// A waiter is a request that is not yet under way.
type waiter struct {
	urgent   bool
	deadline time.Time // zero: none
	needed   time.Time // of an urgent request: of two that wait, the one with the earlier time goes first
	turn     chan bool // gets true if the request may be sent, and false if it is too late

	place   *list.Element // in the list of the other requests
	index   int           // in the heap of the urgent ones, or -1
	arrival uint64
}

// soonest is a heap of urgent requests. Those that are needed at the same time keep their order.
type soonest []*waiter

func (s soonest) Len() int { return len(s) }
func (s soonest) Less(i, j int) bool {
	if c := s[i].needed.Compare(s[j].needed); c != 0 {
		return c < 0
	}
	return s[i].arrival < s[j].arrival
}
func (s soonest) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}
func (s *soonest) Push(x any) {
	w := x.(*waiter)
	w.index = len(*s)
	*s = append(*s, w)
}
func (s *soonest) Pop() any {
	last := len(*s) - 1
	w := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	w.index = -1
	return w
}

// spare returns how many of the requests under way are reserved for urgent ones.
func spare(limit int) int {
	if limit == 1 {
		return 0
	}
	return max(1, limit/4)
}

// waiting reports whether any request waits.
func (f *flow) waiting() bool { return f.urgent.Len()+f.other.Len() > 0 }

// arrive reports whether a request may be sent at once. If not, it waits.
func (f *flow) arrive(now time.Time, w *waiter) bool {
	w.index = -1
	if f.queued(w.urgent) == 0 && f.free(w.urgent) {
		f.underWay++
		return true
	}
	if f.arrivals++; w.urgent {
		w.arrival = f.arrivals
		heap.Push(&f.urgent, w)
	} else {
		w.place = f.other.PushBack(w)
	}
	return false
}

// queued returns how many requests of a kind wait.
func (f *flow) queued(urgent bool) int {
	if urgent {
		return f.urgent.Len()
	}
	return f.other.Len()
}

// free reports whether a request of a kind may be sent.
func (f *flow) free(urgent bool) bool {
	limit := int(f.limit)
	if urgent {
		return f.underWay < limit
	}
	return f.underWay < limit-spare(limit)
}

// giveUp removes a request that waits, and reports whether it did.
func (f *flow) giveUp(w *waiter) bool {
	switch {
	case w.index >= 0:
		heap.Remove(&f.urgent, w.index)
	case w.place != nil:
		f.other.Remove(w.place)
		w.place = nil
	default:
		return false
	}
	return true
}

// leave ends a request, and sends others.
func (f *flow) leave(now, sent time.Time, answered bool) {
	f.underWay--
	switch {
	case answered:
		f.answered = now
		f.limit = min(float64(f.most), f.limit+1/f.limit)
		if f.took == 0 {
			f.took = now.Sub(sent)
		}
		f.took += (now.Sub(sent) - f.took) / 8
	case f.answered.Before(sent) && f.cut.Before(sent):
		// The server is silent, and will find the requests that were given up when it wakes up. Half as many
		// are added each time, so all of them together are never more than twice the most.
		f.limit, f.cut = max(min(2, float64(f.most)), f.limit/2), now
	}
	f.pass(now)
}

// pass sends the requests whose turn it is. It drops those that would be answered too late, unless nothing
// is under way: if all were dropped, the usual time would never be measured again.
func (f *flow) pass(now time.Time) {
	for _, urgent := range []bool{true, false} {
		for f.queued(urgent) > 0 && f.free(urgent) {
			w := f.next(urgent)
			late := f.underWay > 0 && !w.deadline.IsZero() && now.Add(f.took/2).After(w.deadline)
			if !late {
				f.underWay++
			}
			w.turn <- !late
		}
	}
}

// next removes the first of the requests of a kind that wait.
func (f *flow) next(urgent bool) *waiter {
	if urgent {
		return heap.Pop(&f.urgent).(*waiter)
	}
	w := f.other.Remove(f.other.Front()).(*waiter)
	w.place = nil
	return w
}
