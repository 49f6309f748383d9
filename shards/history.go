package shards

import (
	"time"

	"github.com/fencedlease/lease"
)

// A history is what this process knows about one shard.
type history struct {
	named bool // whether the function names has returned it in its last answer
	own   *own // the work of this process on it; nil if there is none

	// From the lists. If the last one did not show who holds the shard, these are zero.
	listed    bool
	holder    string    // the ID of the process that has the shard; empty while it is free
	heldSince time.Time // since when the holder has it; zero if it had it before the first list
	freeSince time.Time // since when it is free
	passed    int       // at how many polls a process should have taken the free shard
	overdue   overdue

	cooldown cooldown
}

// An overdue shard is one that its holder should give to another process.
type overdue struct {
	since time.Time
	token lease.Token // of the grant: another grant counts from its own beginning
}

// While a cooldown lasts, this process does not take the shard, because it failed here.
type cooldown struct {
	until    time.Time
	failures int   // in a row
	err      error // the last one; nil if there was none
}

// An own is a shard that this process acquires or works on.
type own struct {
	order    uint64
	holds    bool          // whether the lease is acquired, and the work has begun
	since    time.Time     // when the work began, or returned an error the last time
	failing  bool          // whether the work returned an error the last time
	failures int           // of the work in a row
	pause    time.Duration // before the next call of the work
	late     int           // at how many polls the shard was free, and the work had not ended
}

// observe records who holds the shard according to a list.
func (h *history) observe(holder string, now time.Time, first bool) {
	if h.listed && h.holder == holder {
		return
	}
	h.unlist()
	h.listed, h.holder = true, holder
	switch {
	case holder == "":
		h.freeSince = now
	case !first: // at the first list, the time is more likely over in which a shard that was taken does not count
		h.heldSince = now
	}
}

// unlist forgets what lists have shown.
func (h *history) unlist() {
	h.listed, h.holder, h.passed = false, "", 0
	h.heldSince, h.freeSince, h.overdue = time.Time{}, time.Time{}, overdue{}
}

// patience is the number of polls after which a process takes a free shard that another should take.
const patience = 4

// trial is the time, in Durations, after which work that always fails has failed mostFailures
// times.
const trial = mostFailures + 1

// counts reports whether the plan counts the shard, which was taken with the given order. Healthy work would
// move whenever a shard that fails everywhere changes hands, so these shards are left out:
//
//   - One that a process has taken in place of another, for a trial.
//   - A free one, if none has taken it in a trial in which each process had its turn.
func (h *history) counts(order uint64, members int, now time.Time, trial time.Duration) bool {
	if h.holder == "" {
		return now.Sub(h.freeSince) < trial || h.passed < patience+members
	}
	return order > 0 || now.Sub(h.heldSince) >= trial
}

// overdueFor returns for how long the shard has been overdue: how long ago its holder, with the given token,
// should have released it.
func (h *history) overdueFor(token lease.Token, now time.Time) time.Duration {
	if h.overdue.since.IsZero() || h.overdue.token != token {
		h.overdue = overdue{now, token}
	}
	return now.Sub(h.overdue.since)
}

// mayTake reports whether this process may acquire the shard.
func (h *history) mayTake(now time.Time) bool { return h.own == nil && !h.coolsDown(now) }

func (h *history) coolsDown(now time.Time) bool { return now.Before(h.cooldown.until) }

// fail begins a cooldown. The pause doubles with each failure in a row, up to the longest.
func (h *history) fail(err error, now time.Time, pause, longest time.Duration) {
	for range h.cooldown.failures {
		if pause *= 2; pause >= longest {
			break
		}
	}
	h.cooldown = cooldown{now.Add(min(pause, longest)), h.cooldown.failures + 1, err}
}

// note stores an error for the View. It lets this process take the shard at once.
func (h *history) note(err error, now time.Time) { h.cooldown = cooldown{until: now, err: err} }
