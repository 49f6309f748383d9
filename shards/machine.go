package shards

import (
	"errors"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A machine makes the decisions of one process. Its inputs are the lists of the leases, the shards of this
// process, and the time. From these inputs, the machine computes the View and what the process should do. The
// machine has no clock, no lock and no goroutine: the caller passes the time to each method, and never calls
// two methods at once.
//
// The files testdata/*.txt show what a machine does. TestPlanted replaces pieces of its code, so each of them
// must occur only once in its file.
type machine struct {
	o      *Options // complete
	prefix string
	id     string // of this process

	names      []string // the last answer of the function names, sorted and without names that are not valid
	nameErr    error    // of the last call of the function names
	digest     digest   // of names
	shards     map[string]*history
	quarantine quarantine
	seen       snapshot
	polls      int       // including those whose list failed; at the first one, the others do not know this process yet
	lists      int       // polls whose list succeeded; before the first one, this process knows nothing about the shards
	breaksFrom time.Time // this process breaks no lease before this time, because other processes may still count fewer shards
	order      uint64    // of the shard that was taken last
	balanced   bool
	idle       int            // the number of idle shards that was reported last
	drained    bool           // whether an operator drains this process
	strays     map[string]int // the drain leases that name no process, and how many lists in a row have shown each
	failures   struct{ lists, names int }
}

func newMachine(o *Options, prefix, id string) *machine {
	return &machine{o: o, prefix: prefix, id: id, shards: map[string]*history{}, quarantine: quarantine{offers: unlimited}, seen: snapshot{view: View{ID: id}}}
}

// self returns what this process announces about itself.
func (m *machine) self() worker {
	return worker{Member{ID: m.id, Owner: m.o.Session.Owner, Weight: m.o.Weight, Max: m.o.Max}, m.digest, m.quarantine.offers}
}

func (m *machine) history(name string) *history {
	h := m.shards[name]
	if h == nil {
		h = new(history)
		m.shards[name] = h
	}
	return h
}

// named stores an answer of the function names. If the call failed, the machine uses the earlier names.
func (m *machine) named(names []string, err error, now time.Time) (reports []report) {
	if m.nameErr = err; err != nil {
		m.failures.names++
		return []report{reportFailed("", err, m.failures.names)}
	}
	m.failures.names = 0
	for _, h := range m.shards {
		h.named = false
	}
	m.names = slices.Compact(slices.Sorted(slices.Values(names)))
	m.names = slices.DeleteFunc(m.names, func(name string) bool {
		err := lease.CheckName(shardName(m.prefix, name))
		if err != nil {
			reports = append(reports, m.failed(name, err, m.o.Interval, now))
			return true
		}
		m.history(name).named = true
		return false
	})
	m.digest = digestOf(m.names)
	return reports
}

// failed records a failure of a shard, for example of its work or of an acquire. This process must then not
// take the shard again until the given pause is over. After several failures in a row, the pause is longer
// than the given one, but at most cooldownOfWork Durations.
func (m *machine) failed(name string, err error, pause time.Duration, now time.Time) report {
	h := m.history(name)
	h.fail(err, now, pause, cooldownOfWork*m.o.Session.Duration)
	return reportFailed(name, err, h.cooldown.failures)
}

func (m *machine) workBegan(name string, now time.Time) {
	h := m.shards[name]
	h.own.holds, h.own.since, h.own.pause = true, now, m.o.Session.Duration/32
	h.cooldown = cooldown{}
}

const (
	// mostFailures is the number of errors in a row after which another process, if there is one, should work on
	// the shard.
	mostFailures = 5

	// The constant cooldownOfWork is a number of Durations. If the work on a shard has failed in a process,
	// the process does not take this shard again for this number of Durations.
	cooldownOfWork = 8
)

// workReturned records that the work on a shard has returned. The work began at the time began. It returns
// the pause before the next call of the work, or false if another process should work on the shard.
func (m *machine) workReturned(name string, began, now time.Time, err error) (pause time.Duration, again bool, reports []report) {
	h, duration := m.shards[name], m.o.Session.Duration
	w := h.own
	if now.Sub(began) >= duration {
		w.failures, w.pause = 0, duration/32
	}
	if w.failing = err != nil; w.failing {
		w.failures++
		w.since = now
		reports = append(reports, reportFailed(name, err, w.failures))
	} else {
		w.failures = 0
	}
	if w.failures >= mostFailures && m.hasOthers(true) {
		m.quarantine.failures++
		m.failed(name, err, cooldownOfWork*duration, now)
		return 0, false, reports
	}
	pause = max(w.pause, time.Millisecond)
	w.pause = min(2*w.pause, duration)
	return pause, true, reports
}

func (m *machine) workLost(name string, reason error, now time.Time) {
	if errors.Is(reason, lease.ErrNoProgress) {
		m.quarantine.failures++
		m.failed(name, reason, cooldownOfWork*m.o.Session.Duration, now)
	} else {
		m.history(name).note(reason, now)
	}
}

func (m *machine) dropped(name string) { m.shards[name].own = nil }

// The method announce updates the quarantine. It returns the text for the field Owner of the lease with which
// this process announces itself.
func (m *machine) announce(now time.Time, ended map[string]bool) (owner string, reports []report) {
	reports = m.updateQuarantine(now, ended)
	return m.self().owner(), reports
}
