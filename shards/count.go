package shards

import "time"

// A tenure is a time during which a shard has had the same holder, as far as this process has seen it.
type tenure struct {
	holder string // empty while the shard is free
	since  time.Time
	lists  int // number of lists by which a process should have taken the free shard
}

// trial is a time, in Durations, in which work that fails has failed mostFailures times.
const trial = mostFailures + 1

// count returns the members and the shards of the plan. Healthy work would move whenever a shard that fails
// everywhere changes hands, so these shards are left out:
//
//   - A shard that a process has taken in place of another, for a trial.
//   - A free shard, if none has taken it in a trial in which each process had its turn.
//
// The Max of a member is lower by the shards that it holds and that are left out. A member without room is left
// out too.
func (r *run) count(members []worker, shards []shard) (open []worker, counted []shard) {
	now, first := r.clock.Now(), r.tenures == nil
	tenures, others := make(map[string]*tenure, len(shards)), map[string]int{}
	for _, s := range shards {
		t := r.tenures[s.name]
		switch {
		case t != nil && t.holder == s.holder:
		case first && s.holder != "": // counts, because its trial is more likely over
			t = &tenure{holder: s.holder}
			if s.order == 0 {
				r.unsure = now.Add(trial * r.o.Session.Duration)
			}
		default:
			t = &tenure{holder: s.holder, since: now}
		}
		tenures[s.name] = t
		long := now.Sub(t.since) >= trial*r.o.Session.Duration
		refused := s.holder == "" && long && t.lists >= patience+len(members)
		tried := s.holder != "" && s.order == 0 && !long
		if refused || tried {
			others[s.holder]++
		} else {
			counted = append(counted, s)
		}
	}
	r.tenures = tenures
	for _, m := range members {
		if m.max == 0 || m.max > others[m.id] {
			m.max = max(0, m.max-others[m.id])
			open = append(open, m)
		}
	}
	return open, counted
}
