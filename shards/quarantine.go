package shards

import "time"

// A quarantine begins if all work of a process fails, and the process had to release two shards in a
// row because of that. The process then offers to have no shard. After the pause, it offers to try one.
// If the work on that shard fails too, another quarantine begins, twice as long. If it goes well, the
// process gets its share again.
type quarantine struct {
	failures int           // number of shards that were given up while no work went well
	pause    time.Duration // the length of the last quarantine; 0 if there was none lately
	until    time.Time     // the end of its pause
	offers   int           // the most shards that the process should have; unlimited if it has its share
}

const (
	unlimited          = -1
	shortestQuarantine = 8  // in Durations, as long as the cooldown of a shard that was given up
	longestQuarantine  = 64 // in Durations
)

// updateQuarantine decides what this process offers. Work goes well if it has run for two Durations without an
// error. The shards in ended are those whose lease has ended.
func (m *machine) updateQuarantine(now time.Time, ended map[string]bool) (reports []report) {
	q, duration := &m.quarantine, m.o.Session.Duration
	fine, well := 0, false // fine is how many works have not failed, and well whether one of them goes well
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
		reports = append(reports, reportRecovered)
	case well && now.Sub(q.until) >= q.pause:
		q.pause = 0
	case failed && over:
		if m.hasOthers(false) { // otherwise the fault is not in this process
			q.pause *= 2
		}
		q.pause = min(max(q.pause, shortestQuarantine*duration), longestQuarantine*duration)
		q.offers, q.until, over = 0, now.Add(q.pause), false
		reports = append(reports, reportQuarantine(q.pause))
	}
	if q.offers != unlimited {
		if q.offers = fine; over {
			q.offers = max(fine, 1)
		}
	}
	return reports
}

// hasOthers reports whether the last list shows other processes, and unless those in quarantine count too,
// whether one of them is not in quarantine.
func (m *machine) hasOthers(inQuarantine bool) bool {
	for _, o := range m.seen.list.members {
		if _, limited := m.seen.list.offers[o.ID]; o.ID != m.id && (inQuarantine || !limited) {
			return true
		}
	}
	return false
}

// limit returns the members of the plan. A member in quarantine may get at most as many shards as it offers. It returns
// all members as they are if the others have no room for all n shards.
func limit(members []worker, offers map[string]int, n int) (limited []worker) {
	room := 0
	for _, w := range members {
		switch most, inside := offers[w.id]; {
		case !inside && w.max == 0:
			room += n
		case !inside:
			room += min(w.max, n)
		case most == 0:
			continue
		case w.max == 0 || most < w.max:
			w.max = most
		}
		limited = append(limited, w)
	}
	if room < n {
		return members
	}
	return limited
}
