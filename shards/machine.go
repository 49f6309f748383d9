package shards

import (
	"errors"
	"slices"
	"time"

	"github.com/fencedlease/lease"
)

// A machine makes the decisions of one process. From each list, the shards of this process and the time, it
// computes the View and what the process should do, which a run carries out. It has no clock, no lock and no
// goroutine: each input is a call of a method with the time, and only one is under way at a time.
//
// testdata/*.txt show what it does, and TestPlanted replaces pieces of its source code, each of which must occur once
// in its file.
type machine struct {
	o      *Options // complete
	prefix string
	id     string // of this process

	names      []string // the last answer of the function names, without those that are not valid; sorted
	nameErr    error    // of the last call of it
	digest     digest   // of names
	shards     map[string]*history
	quarantine quarantine
	seen       snapshot
	polls      int       // number of lists, also of those that failed
	read       bool      // whether a list has not failed
	breaksFrom time.Time // until then, other processes may count fewer shards, and this one breaks no lease
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

// history returns what is known about a shard.
func (m *machine) history(name string) *history {
	h := m.shards[name]
	if h == nil {
		h = new(history)
		m.shards[name] = h
	}
	return h
}

// named takes an answer of the function names. A failed call leaves the names as they are.
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

// failed notes that a shard has failed, and begins a cooldown during which this process does not take the shard.
func (m *machine) failed(name string, err error, pause time.Duration, now time.Time) report {
	h := m.history(name)
	h.fail(err, now, pause, cooldownOfWork*m.o.Session.Duration)
	return reportFailed(name, err, h.cooldown.failures)
}

// workBegan notes that this process has the lease of a shard.
func (m *machine) workBegan(name string, now time.Time) {
	h := m.shards[name]
	h.own.holds, h.own.since, h.own.pause = true, now, m.o.Session.Duration/32
	h.cooldown = cooldown{}
}

const (
	// mostFailures is the number of errors in a row after which another process should try.
	mostFailures = 5

	// cooldownOfWork is how long a process does not take a shard again whose work has failed there, in
	// Durations.
	cooldownOfWork = 8
)

// workReturned notes that the work of a shard has returned, which began at a time. It returns how long to wait
// before the next call, or false if another process should try.
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

// workLost notes that the lease of a shard was lost for a reason.
func (m *machine) workLost(name string, reason error, now time.Time) {
	if errors.Is(reason, lease.ErrNoProgress) {
		m.quarantine.failures++
		m.failed(name, reason, cooldownOfWork*m.o.Session.Duration, now)
	} else {
		m.history(name).note(reason, now)
	}
}

// dropped notes that this process has released a shard, or has not acquired it.
func (m *machine) dropped(name string) { m.shards[name].own = nil }

// announce updates the quarantine, and returns the owner of the lease with which this process
// announces itself, which says how many shards it offers to have.
func (m *machine) announce(now time.Time, ended map[string]bool) (owner string, reports []report) {
	reports = m.updateQuarantine(now, ended)
	return memberOwner(label(m.o.Session.Owner, m.id), m.o.Weight, m.o.Max, m.quarantine.offers, m.digest), reports
}
