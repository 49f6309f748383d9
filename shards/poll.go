package shards

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// A poll is the result of one list of the leases.
type poll struct {
	began, now time.Time // when the list began, and when it returned
	list       listing
	err        error
	ended      map[string]bool // the shards that this process may still work on although their lease has ended
}

type actions struct {
	take    []shard // that this process should acquire; the order is 0 if the plan gives the shard to another
	end     []ending
	breaks  []move
	reports []report
}

type ending struct {
	name  string
	cause error
}

// poll decides what this process does after a list. After the first list, it acquires and releases no shard.
func (m *machine) poll(p poll) (snapshot, actions) {
	var do actions
	m.polls++
	for name, h := range m.shards {
		if h.own != nil && !h.named {
			do.end = append(do.end, ending{name, ErrRemoved})
		}
	}
	slices.SortFunc(do.end, func(a, b ending) int { return strings.Compare(a.name, b.name) })
	m.seen.names, m.seen.view.Interval = m.names, m.o.adapted(p.now.Sub(p.began))
	m.seen.view.Err = errors.Join(m.nameErr, p.err)
	if p.err != nil {
		m.failures.lists++
		do.reports = append(do.reports, reportFailed("", p.err, m.failures.lists))
		return m.seen, do
	}
	m.failures.lists = 0
	m.remember(p, &do)
	m.reportStrays(&do)
	m.move(p, &do)
	m.forget(p.now)
	return m.seen, do
}

// The method remember stores the contents of a list of the leases, and why this process could not take or keep
// a shard.
func (m *machine) remember(p poll, do *actions) {
	l := p.list
	for _, name := range slices.Sorted(maps.Keys(l.shards)) {
		if err := l.shards[name].Err; err != nil {
			do.reports = append(do.reports, m.failed(name, err, m.o.Interval, p.now))
		}
	}
	m.seen.view.At, m.seen.list = p.began, l
	for _, name := range m.names {
		h, s := m.shards[name], l.shards[name]
		if err := h.cooldown.err; err != nil && (s.ID == "" || s.ID == m.id || h.coolsDown(p.now)) {
			s.Name, s.Err = name, err
			l.shards[name] = s
		}
		// The shard is free, but this process cannot take it, because its earlier work on the shard has not
		// ended:
		if p.ended[name] && !s.State.Locked() && !h.coolsDown(p.now) {
			h.own.late++
			h.note(errLate, p.now)
			do.reports = append(do.reports, reportFailed(name, errLate, h.own.late))
		}
	}
}

// The constant nameLag is a number of polls. If a name is new, a process waits for this number of polls, so
// that the other processes can learn the name, too. Then the process takes a free shard even if not all
// processes know its name.
const nameLag = 3

// The method move computes which shards should move between which processes, and then decides what this
// process has to do now.
func (m *machine) move(p poll, do *actions) {
	l, first := m.seen.list, m.polls == 1
	members := m.members(do)
	shards, counted, hidden, others := m.census(p, len(members))
	loads := maps.Clone(hidden)
	for _, s := range shards {
		loads[s.holder]++
	}
	// A member has its Max for all shards, so it also needs room for those that it holds outside the plan, for
	// example because this process does not know the name.
	open := withRoom(members, others)
	moves := planKnown(limit(open, len(counted)), m.digest, counted)
	m.seen.view.Moves = len(moves)
	m.seen.view.Idle = min(loads[""], tooMany(withRoom(members, hidden), len(shards))) // a drained process keeps the shards that no other process has room for
	if first {
		return
	}
	m.reportShares(loads[m.id]-hidden[m.id], len(members), do)
	for _, mv := range moves {
		h, s := m.shards[mv.name], l.shards[mv.name]
		switch {
		case mv.from == m.id && h.own != nil:
			do.end = append(do.end, ending{mv.name, ErrMoving})
		case mv.from == m.id: // this process is already releasing the lease
		case mv.from == "":
			h.passed++
			allKnow := len(agreeing(open, m.digest, bucket(mv.name))) == len(open)
			if mv.to == m.id && (allKnow || h.passed >= nameLag) && h.mayTake(p.now) {
				m.order++
				m.take(mv.name, m.order, loads, do)
			}
		default:
			late := h.overdueFor(s.Token, m.lists, p.now) > m.o.Grace+2*m.seen.view.Interval
			if late && mv.to == m.id && s.State == lease.Leased && p.now.After(m.breaksFrom) {
				h.overdue.since = p.now
				do.breaks = append(do.breaks, mv)
			}
		}
	}
	if !m.drained {
		m.takeInPlace(members, shards, loads, p.now, do)
	}
}

func (m *machine) take(name string, order uint64, loads map[string]int, do *actions) {
	loads[m.id]++
	m.shards[name].own = &own{order: order}
	do.take = append(do.take, shard{name, m.id, order})
}

// takeInPlace takes shards that have been free for a long time because the process that should take them has
// crashed, or cannot work on them. The other processes try to take such a shard one after the other. The shard
// gets the order 0, so that this process releases it last. Otherwise the shard could soon return to a process
// where the work on it fails.
func (m *machine) takeInPlace(members []worker, shards []shard, loads map[string]int, now time.Time, do *actions) {
	self := m.self()
	for _, s := range shards {
		h := m.shards[s.name]
		if s.holder != "" || h.passed < patience || !h.mayTake(now) || !self.hasRoom(loads[m.id]) {
			continue
		}
		know := agreeing(members, m.digest, bucket(s.name))
		if h.passed >= patience+rankBefore(s.name, m.id, know, loads) {
			m.take(s.name, 0, loads, do)
		}
	}
}

// The method census returns the shards whose names this process knows, with their holders, and those of them
// that count in the shares. It also returns how many shards with unknown names each process holds, and how
// many that are not among the counted. This process knows its own shards, so it does not rely on the list for
// them.
func (m *machine) census(p poll, members int) (shards, counted []shard, hidden, others map[string]int) {
	hidden = map[string]int{}
	for name, s := range m.seen.list.shards {
		if h := m.shards[name]; (h == nil || !h.named) && !s.foreign && s.ID != "" {
			hidden[s.ID]++
		}
	}
	others = maps.Clone(hidden)
	for _, name := range m.names {
		l, h := m.seen.list.shards[name], m.shards[name]
		s := shard{name, l.ID, l.order}
		if h.own != nil && !p.ended[name] {
			s = shard{name, m.id, h.own.order}
		} else if l.foreign {
			h.unlist()
			continue
		}
		shards = append(shards, s)
		h.observe(s.holder, p.now, m.lists == 0)
		if m.lists == 0 && s.holder != "" && s.order == 0 {
			m.breaksFrom = p.now.Add(trial * m.o.Session.Duration)
		}
		if h.counts(s.order, members, p.now, trial*m.o.Session.Duration) {
			counted = append(counted, s)
		} else {
			others[s.holder]++
		}
	}
	m.lists++
	return shards, counted, hidden, others
}

// The method members returns the members that are not drained. What the list shows of this process can be out
// of date.
func (m *machine) members(do *actions) (members []worker) {
	drained := false
	for _, o := range m.seen.list.members {
		switch {
		case o.ID == m.id:
			drained = o.Drained
		case !o.Drained:
			members = append(members, o)
		}
	}
	if !drained {
		members = append(members, m.self())
	}
	if drained != m.drained {
		m.drained = drained
		text := "is not drained any more, so it takes its share"
		if drained {
			text = "is drained, so it gives its shards up"
		}
		do.reports = append(do.reports, info(text, "id", m.id))
	}
	return members
}

func (m *machine) reportShares(mine, members int, do *actions) {
	if m.idle != m.seen.view.Idle {
		m.idle = m.seen.view.Idle
		do.reports = append(do.reports, reportIdle(m.idle))
	}
	was := m.balanced
	if m.balanced = m.seen.view.Moves == 0 && m.idle == 0; m.balanced && !was {
		do.reports = append(do.reports, reportBalanced(mine, members))
	}
}

// reportStrays reports a drain lease that names no process, but only if two lists in a row have shown this
// lease.
func (m *machine) reportStrays(do *actions) {
	strays := map[string]int{}
	for _, name := range m.seen.list.strays {
		if strays[name] = m.strays[name] + 1; strays[name] == 2 {
			do.reports = append(do.reports, warn("a drain lease has no effect, because it names the owner or the ID of no process", "name", drainName(m.prefix, name)))
		}
	}
	m.strays = strays
}

// forget removes names that no longer exist. It remembers recent failures, in case a name returns.
func (m *machine) forget(now time.Time) {
	for name, h := range m.shards {
		if h.named {
			continue
		}
		h.unlist()
		if h.own == nil && now.Sub(h.cooldown.until) > cooldownOfWork*m.o.Session.Duration {
			delete(m.shards, name)
		}
	}
}
