package engine

import (
	"time"

	"github.com/fencedlease/lease"
)

const (
	window = 500 * time.Millisecond // how long one measurement takes
	given  = 0.8                    // the part of the server's requests that may be renewals of held leases
	growth = 1.05                   // the factor by which the bound grows in each RenewInterval in which no renewal waits

	renewalsPerDuration = 3                // how often a session.Session with the default RenewInterval renews
	infiniteCounts      = 30 * time.Second // an infinite lease is renewed as one of this duration
)

// The type room decides whether the server is fast enough to renew one more lease. For this decision, it
// compares two numbers: how many renewals the held leases need per second, and how many renewals the server
// can do per second. The caller holds a lock.
//
// The Gate measures the speed of the server only while requests queue up, because without a queue the server
// could do more than it has to do. In addition, most of the requests must be renewals, because renewals can
// be cheaper than other requests. A single measurement can be wrong, for example because the machine was busy
// with something else, so only the mean of several consecutive measurements counts. Afterwards the server may
// become faster, so the bound grows until renewals queue up and the server is measured again. The bound grows
// slowly, because a bound that is too high lets the process acquire too many leases, and the process does not
// give them back.
type room struct {
	held  map[string]holding // by the name of the lease
	load  float64            // how many renewals a second the held leases need
	swept time.Time

	bound float64   // how many renewals a second all leases together may need; 0: unknown
	grown time.Time // when the bound was set or grew
	does  float64   // how many requests a second the server can do: the mean of the last measurements
	last  float64   // requests a second in the last measurement; 0: the server was not at its limit

	began    time.Time // when the current measurement began
	requests int       // how many requests it has counted; each renewal is one
	renewals int       // how many of the requests were renewals
	idle     bool      // whether the server could have done more at some time
}

type holding struct {
	load  float64   // how many renewals a second it needs
	until time.Time // when the lease is lost without another renewal
}

// The method answered counts a request that the server has carried out. This request has renewed the given
// number of leases, and also contained the given number of other requests. The parameter atLimit is true if
// other requests are waiting, so that the server is probably at its limit.
func (r *room) answered(now time.Time, renewals, others int, atLimit bool) {
	r.requests += max(1, renewals+others)
	r.renewals += renewals
	r.idle = r.idle || !atLimit
	took := now.Sub(r.began)
	if took < window {
		return
	}
	before := r.last
	r.last = 0
	if took < 2*window && !r.idle && float64(r.renewals) >= given*float64(r.requests) {
		r.last = float64(r.requests) / took.Seconds()
	} // if took is longer, there were no requests for a while, or the server or this process was paused
	if before > 0 && r.last > 0 {
		if r.does == 0 {
			r.does = max(before, r.last)
		}
		r.does += (r.last - r.does) / 4
		r.bound, r.grown = given*r.does, now
	}
	r.began, r.requests, r.renewals, r.idle = now, 0, 0, false
}

// The method grow raises the upper limit for the number of renewals per second. It does so if no renewal has
// queued up for a while, because the server is then fast enough for all held leases.
func (r *room) grow(now time.Time) {
	if r.bound == 0 || len(r.held) == 0 {
		r.bound = 0
		return
	}
	interval := time.Duration(float64(len(r.held)) / r.load * float64(time.Second)) // the mean time between two renewals of a lease
	for now.Sub(r.grown) >= interval && r.bound < 2*r.load {
		r.bound, r.grown = max(r.bound, r.load)*growth, r.grown.Add(interval)
	}
}

// admit returns a [*FullError] if the server can probably not renew one more lease.
func (r *room) admit(now time.Time, name string, d time.Duration) error {
	r.sweep(now)
	if _, ok := r.held[name]; ok || r.bound == 0 {
		return nil
	}
	r.grow(now)
	if r.bound > 0 && r.load+loadOf(d) > r.bound {
		return r.full(loadOf(d), nil)
	}
	return nil
}

// This method returns the middle of the time from the last renewal of a held lease to its end. For example,
// if a lease of 30 s was renewed at 12:00:00, the result is 12:00:15. If the lease is not held, the method
// returns the zero time.
func (r *room) half(name string) time.Time {
	h, ok := r.held[name]
	if !ok {
		return time.Time{}
	}
	return h.until.Add(-time.Duration(renewalsPerDuration / h.load / 2 * float64(time.Second)))
}

// nearlyFull reports whether the renewals of the held leases need at least half of the bound.
func (r *room) nearlyFull() bool { return r.bound > 0 && r.load >= r.bound/2 }

// The method full returns the error of a refused request. If the request was an acquire, the first parameter
// is the number of renewals per second that the new lease would have needed.
func (r *room) full(more float64, err error) error {
	return &FullError{r.load + more, r.does, len(r.held), err}
}

// sweep removes the leases that were not renewed in time. It does so at most once a second.
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
			r.load = 0 // removes rounding errors
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
