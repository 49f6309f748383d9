package engine

import (
	"time"

	"github.com/fencedlease/lease"
)

const (
	window = 500 * time.Millisecond // how long one measurement takes
	given  = 0.8                    // the part of what a server does that is given to renewals
	growth = 1.05                   // of the bound, each RenewInterval in which no renewal waits

	renewalsPerDuration = 3                // of a session.Session with the default RenewInterval
	infiniteCounts      = 30 * time.Second // an infinite lease is renewed as one of this duration
)

// A room knows how many renewals a second the leases that are held need, and how many the server does. What the
// server does is known only while requests queue up, and only if most of them are renewals, because a server may do
// many more renewals than other requests. A single measurement may be wrong, because the machine was busy with
// something else at that moment, or because many requests that had waited were answered at once. So only the mean of
// several consecutive measurements counts. Later the server may be able to do more than that mean, so the bound
// grows until renewals queue up and the server can be measured again. It grows only as fast as the renewals of
// newly acquired leases begin, and slowly, because a lease that was acquired beyond the limit stays acquired, and a
// server or a process at its limit has no reserve. The caller holds a lock.
type room struct {
	held  map[string]holding // by name
	load  float64            // renewals a second of all held
	swept time.Time

	bound float64   // renewals a second that may be asked for; 0: unknown
	grown time.Time // when the bound was set or grew
	does  float64   // requests a second: the mean of the last measurements
	last  float64   // requests a second in the last measurement; 0: the server was not at its limit in it

	began    time.Time // of the measurement under way
	requests int       // in it; a renewal counts as one
	renewals int       // among them
	idle     bool      // the server could have done more at some time
}

// A holding is a lease that was granted or renewed through the Gate.
type holding struct {
	load  float64   // its renewals a second
	until time.Time // without a renewal it is lost by then
}

// answered counts a request that the server has carried out. It renewed the given number of leases, and had the
// given number of other requests. The parameter most says whether the server seems to do all that it can: other
// requests wait.
func (r *room) answered(now time.Time, renewals, others int, most bool) {
	r.requests += max(1, renewals+others)
	r.renewals += renewals
	r.idle = r.idle || !most
	took := now.Sub(r.began)
	if took < window {
		return
	}
	before := r.last
	r.last = 0
	if took < 2*window && !r.idle && float64(r.renewals) >= given*float64(r.requests) {
		r.last = float64(r.requests) / took.Seconds()
	} // after longer, it is the first request, or the server or this process was paused
	if before > 0 && r.last > 0 {
		if r.does == 0 {
			r.does = max(before, r.last)
		}
		r.does += (r.last - r.does) / 4
		r.bound, r.grown = given*r.does, now
	}
	r.began, r.requests, r.renewals, r.idle = now, 0, 0, false
}

// grow raises the bound if nothing has queued up for a while. The server then renews all that are held.
func (r *room) grow(now time.Time) {
	if r.bound == 0 || len(r.held) == 0 {
		r.bound = 0
		return
	}
	interval := time.Duration(float64(len(r.held)) / r.load * float64(time.Second)) // the mean of all held
	for now.Sub(r.grown) >= interval && r.bound < 2*r.load {
		r.bound, r.grown = max(r.bound, r.load)*growth, r.grown.Add(interval)
	}
}

// admit returns a [*FullError] if the renewals of one more lease do not fit.
func (r *room) admit(now time.Time, name string, d time.Duration) error {
	if _, ok := r.held[name]; ok || r.bound == 0 {
		return nil
	}
	r.sweep(now)
	r.grow(now)
	if r.bound > 0 && r.load+loadOf(d) > r.bound {
		return r.full(loadOf(d), nil)
	}
	return nil
}

// half returns when half of the time of a lease that is held is over. The zero time means that it is not held.
func (r *room) half(name string) time.Time {
	h, ok := r.held[name]
	if !ok {
		return time.Time{}
	}
	return h.until.Add(-time.Duration(renewalsPerDuration / h.load / 2 * float64(time.Second)))
}

// nearlyFull reports whether at least half of what fits is held.
func (r *room) nearlyFull() bool { return r.bound > 0 && r.load >= r.bound/2 }

// full returns the error of an acquire that does not fit, with the load that its lease would add.
func (r *room) full(more float64, err error) error {
	return &FullError{r.load + more, r.does, len(r.held), err}
}

// sweep removes the leases that were not renewed. It does so at most once a second.
func (r *room) sweep(now time.Time) {
	if now.Sub(r.swept) < time.Second {
		return
	}
	r.swept = now
	for name, h := range r.held {
		if now.After(h.until) {
			r.forget(name)
		}
	}
}

// note records what was written under a name.
func (r *room) note(now time.Time, name string, rec lease.Record) {
	r.forget(name)
	if rec.State != lease.Leased {
		return
	}
	if r.held == nil {
		r.held = map[string]holding{}
	}
	r.held[name] = holding{loadOf(rec.Duration), now.Add(counted(rec.Duration))}
	r.load += loadOf(rec.Duration)
}

func (r *room) forget(name string) {
	if h, ok := r.held[name]; ok {
		delete(r.held, name)
		if r.load -= h.load; len(r.held) == 0 {
			r.load = 0 // without what rounding has left
		}
	}
}

func counted(d time.Duration) time.Duration {
	if d == lease.Infinite {
		return infiniteCounts
	}
	return d
}

func loadOf(d time.Duration) float64 { return renewalsPerDuration / counted(d).Seconds() }
