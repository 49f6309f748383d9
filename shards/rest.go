package shards

import (
	"log/slog"
	"time"
)

// A rest is what a process knows of its own work. If no work goes well and two shards in a row were given up,
// the process rests: it offers to take no shard. After the pause, it offers to try one. If that is given up too,
// it rests twice as long, and if it goes well, the process has its share again.
type rest struct {
	strikes int           // number of shards that were given up while no work went well; guarded by run.heldMu
	pause   time.Duration // the length of the last rest; 0 if there was none lately
	until   time.Time     // the end of the last rest
	offers  int           // the most shards that the process should have; unlimited if it has its share
}

const (
	unlimited    = -1
	shortestRest = 8  // in Durations, as long as a shard that was given up is avoided
	longestRest  = 64 // in Durations
)

// judge decides what this process offers. Work goes well if it has run for two Durations without an error.
func (r *run) judge() {
	now, duration := r.clock.Now(), r.o.Session.Duration
	fine, well := 0, false // fine is how many works have not failed, and well whether one of them goes well
	r.heldMu.Lock()
	for _, h := range r.held {
		if h.session != nil && h.mine() {
			long := now.Sub(h.since) >= 2*duration
			if well = well || long; long || !h.failing {
				fine++
			}
		}
	}
	over := !now.Before(r.rest.until)
	rested := r.rest.offers != unlimited
	failed := fine == 0 && (r.rest.strikes >= 2 || rested && over && r.rest.strikes > 0)
	if well || failed || !over {
		r.rest.strikes = 0
	}
	r.heldMu.Unlock()
	switch {
	case well && rested:
		r.rest.offers, r.rest.until = unlimited, now
		r.log(slog.LevelInfo, "work goes well again, so the process takes its share")
	case well && now.Sub(r.rest.until) >= r.rest.pause:
		r.rest.pause = 0
	case failed && over:
		if r.rest.pause == 0 || r.hasOthers(false) { // if all others rest too, the fault is not in this process
			r.rest.pause *= 2
		}
		r.rest.pause = min(max(r.rest.pause, shortestRest*duration), longestRest*duration)
		r.rest.until, over, rested = now.Add(r.rest.pause), false, true
		r.rest.offers = 0
		r.log(slog.LevelWarn, "no work goes well, so the process rests", "rest", r.rest.pause)
	}
	if r.rest.offers != unlimited {
		if r.rest.offers = fine; over {
			r.rest.offers = max(fine, 1)
		}
	}
}

// limit returns the members of the plan, of which those that rest get no more than they offer. It returns all
// members as they are if the others have no room for all n shards.
func limit(members []worker, offers map[string]int, n int) (limited []worker) {
	room := 0
	for _, m := range members {
		switch most, rests := offers[m.id]; {
		case !rests && m.max == 0:
			room += n
		case !rests:
			room += min(m.max, n)
		case most == 0:
			continue
		case m.max == 0 || most < m.max:
			m.max = most
		}
		limited = append(limited, m)
	}
	if room < n {
		return members
	}
	return limited
}

// announcement returns the owner of the lease with which the process announces itself.
func (r *run) announcement() string {
	return memberOwner(r.label, r.o.Weight, r.o.Max, r.rest.offers, r.knows)
}
