package shards

import (
	"slices"
	"time"
)

// A quarantine takes all shards from a process in which all work fails, for example because its disk is full.
// It begins when the process has had to release two shards in a row because their work failed. After a pause,
// the process tries one shard. If the work on that shard fails too, the quarantine begins again, and lasts
// twice as long. Otherwise the process gets its share again.
type quarantine struct {
	failures int           // number of shards that were released because their work failed, since other work last succeeded
	pause    time.Duration // the length of the last quarantine; 0 if that was long ago
	until    time.Time     // the end of the quarantine's pause
	offers   int           // the largest number of shards that the process accepts; unlimited outside a quarantine
}

const (
	unlimited          = -1
	shortestQuarantine = 8  // in Durations, as long as the cooldown of a shard whose work failed
	longestQuarantine  = 64 // in Durations
)

// updateQuarantine computes how many shards this process accepts. The work on a shard counts as successful if
// it has been running for two Durations without an error. Shards whose lease has ended do not count.
func (m *machine) updateQuarantine(now time.Time, ended map[string]bool) (reports []report) {
	q, duration := &m.quarantine, m.o.Session.Duration
	fine, well := 0, false // fine is the number of works whose last call has not failed
	for name, h := range m.shards {
		if h.own != nil && h.own.holds && !ended[name] {
			long := now.Sub(h.own.since) >= 2*duration
			if well = well || long; long || !h.own.failing {
				fine++
			}
		}
	}
	over := !now.Before(q.until)
	inside := q.offers != unlimited
	failed := fine == 0 && (q.failures >= 2 || inside && over && q.failures > 0)
	if well || failed || !over {
		q.failures = 0
	}
	switch {
	case well && inside:
		q.offers, q.until = unlimited, now
		reports = append(reports, info("work goes well again, so the process takes its share"))
	case well && now.Sub(q.until) >= q.pause:
		q.pause = 0
	case failed && over:
		if m.hasOthers(false) { // otherwise all processes fail, so the fault is not in this process
			q.pause *= 2
		}
		q.pause = min(max(q.pause, shortestQuarantine*duration), longestQuarantine*duration)
		q.offers, q.until, over = 0, now.Add(q.pause), false
		reports = append(reports, warn("no work goes well, so the process is in quarantine", "pause", q.pause))
	}
	if q.offers != unlimited {
		if q.offers = fine; over {
			q.offers = max(fine, 1)
		}
	}
	return reports
}

// hasOthers reports whether the last list shows another process. Processes in quarantine count only if
// inQuarantine is true.
func (m *machine) hasOthers(inQuarantine bool) bool {
	return slices.ContainsFunc(m.seen.list.members, func(o worker) bool {
		return o.ID != m.id && (inQuarantine || o.offers == unlimited)
	})
}

// limit returns the members of the plan. A member in quarantine gets no more shards than it accepts, unless
// the other members have no room for all n shards.
func limit(members []worker, n int) (limited []worker) {
	var outside []worker
	for _, w := range members {
		switch {
		case w.offers == unlimited:
			outside = append(outside, w)
		case w.offers == 0:
			continue
		case w.Max == 0 || w.offers < w.Max:
			w.Max = w.offers
		}
		limited = append(limited, w)
	}
	if tooMany(outside, n) > 0 {
		return members
	}
	return limited
}
