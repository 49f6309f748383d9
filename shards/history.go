package shards

import (
	"time"

	"github.com/fencedlease/lease"
)

type history struct {
	named bool // whether the last answer of the function names contains it
	own   *own // the work of this process on the shard; nil if there is none

	// What the lists show. These fields are zero if the last list did not show who holds the shard.
	listed  bool
	holder  string    // the ID of the process that has the shard; empty while it is free
	since   time.Time // of the holder; zero if it had the shard at the first list
	passed  int       // the number of polls at which a process should have taken the free shard
	overdue overdue

	cooldown cooldown
}

// An overdue shard is one that its holder should give to another process.
type overdue struct {
	since time.Time
	token lease.Token // of the grant, because each new grant starts the time again
	list  int         // the number of the last list at which the shard was overdue
}

// A cooldown is the time for which this process does not take a shard, because the work on the shard has
// failed in this process, or because the process could not acquire the lease.
type cooldown struct {
	until    time.Time
	failures int   // in a row
	err      error // the last one; nil if there was none
}

// An own is a shard that this process acquires or works on.
type own struct {
	order    uint64
	holds    bool          // whether the lease is acquired, and the work has begun
	since    time.Time     // when the work began, or last returned an error
	failing  bool          // whether the work has returned an error in its last call
	failures int           // errors of the work in a row
	pause    time.Duration // before the next call of the work
	late     int           // the number of polls at which the shard was free, but the earlier work had not ended
}

// The method observe must be called after each list of the leases. It stores which process holds the shard.
func (h *history) observe(holder string, now time.Time, first bool) {
	if h.listed && h.holder == holder {
		return
	}
	h.unlist()
	h.listed, h.holder, h.since = true, holder, now
	if first && holder != "" { // then the holder has probably had the shard for long enough for counts
		h.since = time.Time{}
	}
}

func (h *history) unlist() {
	h.listed, h.holder, h.since, h.passed, h.overdue = false, "", time.Time{}, 0, overdue{}
}

// If another process should have taken a shard, and the shard is still free after this number of polls, this
// process takes the shard.
const patience = 4

// The constant trial is a time in Durations. It is long enough for mostFailures failures in a row, so a shard
// on which the work always fails is released within this time.
const trial = mostFailures + 1

// counts reports whether the shard counts in the shares. A shard whose work fails everywhere changes hands
// often, and would make healthy shards move each time, so two kinds of shards do not count:
//
//   - a shard that was taken by a process other than the planned one, until that process has held it for a
//     trial
//   - a free shard, if no process has taken it for a trial, although each process had its turn
func (h *history) counts(order uint64, members int, now time.Time, trial time.Duration) bool {
	if h.holder == "" {
		return now.Sub(h.since) < trial || h.passed < patience+members
	}
	return order > 0 || now.Sub(h.since) >= trial
}

// overdueFor returns how long ago the holder, with the given token, should have released the shard. It is called
// after each list at which the shard is overdue.
func (h *history) overdueFor(token lease.Token, list int, now time.Time) time.Duration {
	if h.overdue.token != token || h.overdue.list < list-1 {
		h.overdue = overdue{since: now, token: token}
	}
	h.overdue.list = list
	return now.Sub(h.overdue.since)
}

func (h *history) mayTake(now time.Time) bool { return h.own == nil && !h.coolsDown(now) }

func (h *history) coolsDown(now time.Time) bool { return now.Before(h.cooldown.until) }

// The method fail begins a cooldown. Each further failure in a row doubles the pause. The last parameter is
// the maximum length of the pause.
func (h *history) fail(err error, now time.Time, pause, longest time.Duration) {
	for range h.cooldown.failures {
		if pause *= 2; pause >= longest {
			break
		}
	}
	h.cooldown = cooldown{now.Add(min(pause, longest)), h.cooldown.failures + 1, err}
}

// The method note stores an error so that the View shows it. Unlike the method fail, it begins no cooldown,
// so this process can take the shard again at once.
func (h *history) note(err error, now time.Time) { h.cooldown = cooldown{until: now, err: err} }
