package engine

import (
	"cmp"
	"container/list"
	"time"
)

// A flow limits how many requests are sent to the server at the same time, and decides in which order. It
// reads no clock. The caller holds a lock.
type flow struct {
	most     int
	limit    float64          // how many requests may be running; not above most
	underWay int              // how many requests are running
	others   int              // how many of these are not urgent
	urgent   soonest[*waiter] // the waiting urgent requests
	other    list.List        // the other waiting requests, each a *waiter, in the order of arrival

	took     time.Duration // the mean time from sending a request to its answer
	answered time.Time     // when the last answer arrived
	cut      time.Time     // when the limit was last reduced

	patience   time.Duration // about how long the callers of urgent requests wait for an answer; 0: unknown
	last       time.Time     // when the last request was sent
	unanswered time.Time     // when the first request since the last answer was sent; zero if there is none
}

// The flow never reduces its limit below this number of running requests, even if the server stops answering.
// With a lower limit, a few requests that have no deadline and never end could block all others.
const fewest = 4

// While the patience of the callers is unknown, the flow assumes this one.
const unknownPatience = 4 * time.Second

func newFlow(most int) flow { return flow{most: most, limit: float64(most)} }

// A waiter is a request that was not sent yet.
type waiter struct {
	place
	urgent   bool
	deadline time.Time     // the deadline of the request's context; zero if there is none
	calm     time.Time     // until then, requests that are not urgent may overtake this one
	turn     chan bool     // receives true if the request may be sent, and false if it is too late
	probe    bool          // whether the request is sent while the server is silent
	listed   *list.Element // the element of flow.other; nil if the request is urgent or no longer waits
}

// spare returns how many requests within the limit are reserved for urgent ones.
func spare(limit int) int {
	if limit == 1 {
		return 0
	}
	return max(1, limit/4)
}

// The function kept returns how many places are kept for requests that are not urgent, even if urgent
// requests wait. If a held lease could soon be lost, urgent requests get these places first. Without this
// reserve, a list would get no answer for as long as the renewals alone keep the server busy.
func kept(limit int) int { return limit / 8 }

func (f *flow) waiting() bool { return f.urgent.len()+f.other.Len() > 0 }

// The method silent reports whether the server has not answered any request for a quarter of the patience of
// the callers. Most requests then wait until the server answers again. A request that is sent to a silent
// server usually fails, and its lease cannot be renewed until the request has timed out. So the flow sends
// only probes, one in each quarter of the patience.
//
// A request that fails early does not make the server silent, unless its caller has given up. For example, a
// server that is down refuses connections at once.
func (f *flow) silent(now time.Time) bool {
	return !f.unanswered.IsZero() && now.Sub(f.unanswered) >= max(f.pause(), 2*f.took)
}

func (f *flow) pause() time.Duration { return cmp.Or(f.patience, unknownPatience) / 4 }

// untilProbe returns how long the waiting requests must still wait for the next probe. If the server is not
// silent, or if a probe may be sent now, the result is not positive.
func (f *flow) untilProbe(now time.Time) time.Duration {
	if !f.silent(now) {
		return 0
	}
	return f.last.Add(f.pause()).Sub(now)
}

// The method follow must be called for each urgent request. The parameter is the time for which its caller
// waits for an answer. The flow adapts to the callers that wait longest.
func (f *flow) follow(patience time.Duration) { f.patience = max(patience, f.patience-f.patience/8) }

// arrive adds a request, and returns true if it may be sent at once. Otherwise the request waits.
func (f *flow) arrive(now time.Time, w *waiter) bool {
	if f.queued(w.urgent) == 0 && f.free(w.urgent) && f.untilProbe(now) <= 0 {
		f.send(now, w)
		return true
	}
	if w.urgent {
		f.urgent.add(w)
	} else {
		w.listed = f.other.PushBack(w)
	}
	return false
}

func (f *flow) queued(urgent bool) int {
	if urgent {
		return f.urgent.len()
	}
	return f.other.Len()
}

// The method free reports whether the limit allows another request. The parameter urgent says whether that
// request is urgent.
func (f *flow) free(urgent bool) bool {
	limit := int(f.limit)
	if urgent || f.others < kept(limit) {
		return f.underWay < limit
	}
	return f.underWay < limit-spare(limit)
}

// The method first reports whether the flow should send an urgent request next.
func (f *flow) first(now time.Time) (urgent bool) {
	if f.urgent.len() == 0 || f.other.Len() == 0 || f.others >= kept(int(f.limit)) {
		return f.urgent.len() > 0
	}
	return !now.Before(f.urgent.first().calm)
}

// The method send must be called when a request begins, and the method over when the request has ended.
func (f *flow) send(now time.Time, w *waiter) {
	w.probe = f.silent(now)
	f.last = now
	if f.unanswered.IsZero() {
		f.unanswered = now
	}
	f.count(w.urgent, 1)
}

// If the last request has ended before the server was silent, the silence does not begin. Otherwise the time
// without requests after a canceled request would count.
func (f *flow) over(now time.Time, urgent bool) {
	if f.count(urgent, -1); f.underWay == 0 && !f.silent(now) {
		f.unanswered = time.Time{}
	}
}

// takeBack must be called instead of over if the request was not sent after all.
func (f *flow) takeBack(now time.Time, urgent bool) {
	if f.last.Equal(f.unanswered) {
		f.unanswered = time.Time{}
	}
	f.last = time.Time{} // the next probe need not wait
	f.over(now, urgent)
}

func (f *flow) count(urgent bool, n int) {
	if f.underWay += n; !urgent {
		f.others += n
	}
}

// giveUp removes a request from the queue, and returns false if the request is no longer waiting.
func (f *flow) giveUp(w *waiter) bool {
	if w.listed == nil {
		return f.urgent.remove(w)
	}
	f.other.Remove(w.listed)
	w.listed = nil
	return true
}

// The method leave must be called when a request has ended. It adapts the limit, and sends the next requests.
// The parameter early is true if the request has failed although its caller was still waiting.
func (f *flow) leave(now, sent time.Time, urgent, answered, early bool) {
	f.over(now, urgent)
	switch {
	case answered:
		f.answered, f.unanswered = now, time.Time{}
		f.limit = min(float64(f.most), f.limit+1/f.limit)
		if f.took == 0 {
			f.took = now.Sub(sent)
		}
		f.took += (now.Sub(sent) - f.took) / 8
	case f.answered.Before(sent) && f.cut.Before(sent):
		// When a silent server recovers, it first works through requests whose callers no longer wait. So the
		// limit is halved repeatedly while the server is silent, until only a few requests are sent.
		f.limit, f.cut = max(min(fewest, float64(f.most)), f.limit/2), now
	}
	if early && now.Sub(sent) < f.pause() {
		f.unanswered = time.Time{}
		if f.underWay > 0 {
			f.unanswered = now
		}
	}
	f.pass(now)
}

// pass sends the requests whose turn it is. pass drops requests that would be answered too late, unless no
// other request is running. If pass dropped all requests, no answer would ever show that the server has
// become faster.
func (f *flow) pass(now time.Time) {
	for f.waiting() {
		urgent := f.first(now)
		if !f.free(urgent) || f.untilProbe(now) > 0 {
			return
		}
		w := f.next(now, urgent)
		late := f.underWay > 0 && !w.deadline.IsZero() && f.late(now, w.deadline)
		if !late {
			f.send(now, w)
		}
		w.turn <- !late
	}
}

// late reports whether a request that is sent now would probably be answered after its deadline.
func (f *flow) late(now, deadline time.Time) bool { return now.Add(f.took / 2).After(deadline) }

// The method next removes the first request from one of the two queues, and returns it. The parameter urgent
// says whether to use the queue of the urgent requests. While the server is silent, the method returns the
// urgent request that is needed last, because that one can be repeated if it fails.
func (f *flow) next(now time.Time, urgent bool) *waiter {
	switch {
	case urgent && f.silent(now):
		return f.urgent.last()
	case urgent:
		return f.urgent.next()
	}
	w := f.other.Remove(f.other.Front()).(*waiter)
	w.listed = nil
	return w
}
