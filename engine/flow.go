package engine

import (
	"container/list"
	"time"
)

// A flow decides which requests are under way. It reads no clock, and the caller holds a lock.
type flow struct {
	most     int
	limit    float64          // of the requests under way; at most most
	underWay int              // all of them
	others   int              // those that are not urgent
	urgent   soonest[*waiter] // those that wait
	other    list.List        // of *waiter, in the order of arrival

	took     time.Duration // the usual time from sending to the answer
	answered time.Time     // the last answer
	cut      time.Time     // when the limit was cut
}

// fewest is the number of requests that a server gets at a time although it is silent. If one of them
// has no deadline and never ends, the others must not have to wait for it.
const fewest = 4

func newFlow(most int) flow { return flow{most: most, limit: float64(most)} }

// A waiter is a request that is not yet under way.
type waiter struct {
	place
	urgent   bool
	deadline time.Time     // zero: none
	calm     time.Time     // until then, an urgent request may be overtaken by others
	turn     chan bool     // gets true if the request may be sent, and false if it is too late
	listed   *list.Element // in the list of the other requests
}

// spare returns how many of the requests under way are reserved for urgent ones.
func spare(limit int) int {
	if limit == 1 {
		return 0
	}
	return max(1, limit/4)
}

// kept returns how many places are kept for requests that are not urgent, as long as so many of these wait and no
// lease will soon be lost. Otherwise a list would get no answer while the server is a little too slow for all
// renewals.
func kept(limit int) int { return limit / 8 }

// waiting reports whether any request waits.
func (f *flow) waiting() bool { return f.urgent.len()+f.other.Len() > 0 }

// arrive reports whether a request may be sent at once. If not, it waits.
func (f *flow) arrive(now time.Time, w *waiter) bool {
	if f.queued(w.urgent) == 0 && f.free(w.urgent) {
		f.send(w.urgent)
		return true
	}
	if w.urgent {
		f.urgent.add(w)
	} else {
		w.listed = f.other.PushBack(w)
	}
	return false
}

// queued returns how many requests of a kind wait.
func (f *flow) queued(urgent bool) int {
	if urgent {
		return f.urgent.len()
	}
	return f.other.Len()
}

// free reports whether a request of a kind may be sent.
func (f *flow) free(urgent bool) bool {
	limit := int(f.limit)
	if urgent || f.others < kept(limit) {
		return f.underWay < limit
	}
	return f.underWay < limit-spare(limit)
}

// first reports whether the next request to be sent is an urgent one.
func (f *flow) first(now time.Time) (urgent bool) {
	if f.urgent.len() == 0 || f.other.Len() == 0 || f.others >= kept(int(f.limit)) {
		return f.urgent.len() > 0
	}
	return !now.Before(f.urgent.first().calm)
}

// send counts a request that is being sent, and over counts it out when it has ended.
func (f *flow) send(urgent bool) { f.count(urgent, 1) }
func (f *flow) over(urgent bool) { f.count(urgent, -1) }

func (f *flow) count(urgent bool, n int) {
	if f.underWay += n; !urgent {
		f.others += n
	}
}

// giveUp removes a request that waits, and reports whether it did.
func (f *flow) giveUp(w *waiter) bool {
	if w.listed == nil {
		return f.urgent.remove(w)
	}
	f.other.Remove(w.listed)
	w.listed = nil
	return true
}

// leave ends a request, and sends others.
func (f *flow) leave(now, sent time.Time, urgent, answered bool) {
	f.over(urgent)
	switch {
	case answered:
		f.answered = now
		f.limit = min(float64(f.most), f.limit+1/f.limit)
		if f.took == 0 {
			f.took = now.Sub(sent)
		}
		f.took += (now.Sub(sent) - f.took) / 8
	case f.answered.Before(sent) && f.cut.Before(sent):
		// The server is silent. When it wakes up, it will first find requests whose callers no
		// longer wait. So the limit is halved again and again while the server is silent, until only a few requests are
		// sent.
		f.limit, f.cut = max(min(fewest, float64(f.most)), f.limit/2), now
	}
	f.pass(now)
}

// pass sends the requests whose turn it is. It drops those that would be answered too late, unless nothing
// is under way: if all were dropped, the usual time would never be measured again.
func (f *flow) pass(now time.Time) {
	for f.waiting() {
		urgent := f.first(now)
		if !f.free(urgent) {
			return
		}
		w := f.next(urgent)
		late := f.underWay > 0 && !w.deadline.IsZero() && f.late(now, w.deadline)
		if !late {
			f.send(urgent)
		}
		w.turn <- !late
	}
}

// late reports whether a request would be answered after its deadline if it were sent now.
func (f *flow) late(now, deadline time.Time) bool { return now.Add(f.took / 2).After(deadline) }

// next removes the first of the requests of a kind that wait.
func (f *flow) next(urgent bool) *waiter {
	if urgent {
		return f.urgent.next()
	}
	w := f.other.Remove(f.other.Front()).(*waiter)
	w.listed = nil
	return w
}
