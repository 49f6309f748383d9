// Package histories checks whether the results that several clients got for one lease at the same time,
// from a [lease.Store] and from authorities over it, are linearizable.
//
// In general, that needs a search over all orders of the requests. Here the versions of the records
// determine the order: a version never recurs, and every swap names the version that it replaced. The
// package checks that the versions form one sequence, and that the times of all calls agree with it. Each
// version must end with a number that rises with every swap.
package histories

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A History records the exchanges of several clients for one name. The zero History is empty. A History is
// safe for use by several goroutines at once.
type History struct {
	mu      sync.Mutex
	seen    []Exchange
	answers []answer
}

// An Exchange is a load that returned a version, or a swap that may have made a version.
type Exchange struct {
	Call, Return time.Time
	Swap         bool
	Old          lease.Snapshot // the snapshot that a swap replaces
	Next         lease.Record   // the record that a swap writes
	Snap         lease.Snapshot // the result; for a successful swap, the version that it made
	Err          error
}

// Store returns a wrapper of s that records all exchanges in the history.
func (h *History) Store(s lease.Store) lease.Store { return &watched{s, h} }

// Len returns the number of exchanges.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seen)
}

// Add records an exchange that was not seen through [History.Store].
func (h *History) Add(e Exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, e)
}

type watched struct {
	lease.Store
	h *History
}

func (w *watched) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	call := time.Now()
	snap, err := w.Store.Load(ctx, name)
	if err == nil {
		w.h.Add(Exchange{Call: call, Return: time.Now(), Snap: snap})
	}
	return snap, err
}

func (w *watched) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	call := time.Now()
	snap, err := w.Store.Swap(ctx, name, old, next)
	w.h.Add(Exchange{Call: call, Return: time.Now(), Swap: true, Old: old, Next: next, Snap: snap, Err: err})
	return snap, err
}

// Options describe the store.
type Options struct {
	OwnClock bool // the store has a clock, so all clients see the same end of a lease, and the times never go back
}

// Check returns nil if the history is linearizable, or else an error that lists all violations.
func (h *History) Check(o Options) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := checker{Options: o, records: map[int64]lease.Record{}, made: map[int64]Exchange{}, replaced: map[int64]Exchange{}}
	for _, s := range h.seen {
		if s.Snap.Version != "" {
			c.shown(s)
		}
		if s.Swap && s.Err == nil {
			c.committed(s)
		}
	}
	c.chain()
	c.applied(h.seen)
	c.time(h.seen)
	c.answered(h.seen, h.answers)
	return errors.Join(c.errs...)
}

type checker struct {
	Options
	errs     []error
	records  map[int64]lease.Record // the records that were seen, by version
	made     map[int64]Exchange     // the swaps that committed, by the version that they made
	replaced map[int64]Exchange     // the swaps that committed, by the version that they replaced
}

func (c *checker) bad(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// number returns the number at the end of a version.
func number(version string) (n int64) {
	_, err := fmt.Sscan(version[strings.LastIndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })+1:], &n)
	if err != nil {
		return math.MinInt64
	}
	return n
}

// withoutFloor returns r, but with the epoch 0 if r has no ID. Its name may be unknown then, and a store
// may raise the epoch of an unknown name at any time.
func withoutFloor(r lease.Record) lease.Record {
	if r.ID.IsZero() {
		r.Epoch = 0
	}
	return r
}

// shown checks that each version has only one record.
func (c *checker) shown(s Exchange) {
	v, r := number(s.Snap.Version), withoutFloor(s.Snap.Record)
	if !c.OwnClock {
		r.Until = time.Time{}
	}
	if before, ok := c.records[v]; ok && before != r {
		c.bad("version %s was seen as %v and as %v", s.Snap.Version, before, r)
	}
	c.records[v] = r
}

// committed checks that each version is made only once, and is replaced only once, by a swap of exactly
// that version. An engine may compute Until itself, and the epoch of a record that it deletes.
func (c *checker) committed(s Exchange) {
	put := s.Next
	if put.Until = s.Snap.Record.Until; !put.ID.IsZero() && put != s.Snap.Record {
		c.bad("version %s was to be %v, and is %v", s.Snap.Version, s.Next, s.Snap.Record)
	}
	made, old := number(s.Snap.Version), number(s.Old.Version)
	if other, ok := c.made[made]; ok {
		c.bad("version %d was made from %s and from %s", made, other.Old.Version, s.Old.Version)
	}
	if other, ok := c.replaced[old]; ok {
		c.bad("version %d was replaced by %s and by %s: an update is lost", old, other.Snap.Version, s.Snap.Version)
	}
	c.made[made], c.replaced[old] = s, s
	if made <= old {
		c.bad("version %d was replaced by %d", old, made)
	}
	if c.OwnClock && s.Old.Now.Before(s.Old.Record.Until) && !s.Snap.Now.Before(s.Old.Record.Until) {
		c.bad("version %d was decided on at %v, and committed at %v after its end at %v", made, s.Old.Now, s.Snap.Now, s.Old.Record.Until)
	}
}

// chain checks that no version is missing between two others, and that epochs of records with IDs never fall.
func (c *checker) chain() {
	var versions []int64
	for v := range c.records {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	highest := uint64(0)
	for i, v := range versions {
		if r := c.records[v]; !r.ID.IsZero() && r.Epoch < highest {
			c.bad("the epoch fell from %d to %d", highest, r.Epoch)
		}
		highest = max(highest, c.records[v].Epoch)
		if i == 0 {
			continue
		}
		before := versions[i-1]
		if s, ok := c.made[v]; ok && number(s.Old.Version) < before {
			c.bad("version %d replaced %s, though there was %d between", v, s.Old.Version, before)
		}
	}
}

// applied checks the effects of failed grants, each of which has an ID of its own. A grant that failed with
// a conflict must never appear in the history, and one with another error at most once. If all processes
// agree on the end of a lease, a retry of the same grant also differs from the first attempt.
func (c *checker) applied(seen []Exchange) {
	if !c.OwnClock {
		return
	}
	count := map[lease.Record]int{}
	for _, r := range c.records {
		count[r]++
	}
	for _, s := range seen {
		if s.Err == nil || s.Next.Epoch == s.Old.Record.Epoch {
			continue
		}
		most := 1
		if errors.Is(s.Err, lease.ErrConflict) {
			most = 0
		}
		if n := count[s.Next]; n > most {
			c.bad("%v failed with %v and was applied %d times", s.Next, s.Err, n)
		}
	}
}

// time checks that no exchange returned an older state than one that had ended before its call.
func (c *checker) time(seen []Exchange) {
	var order []Exchange
	for _, s := range seen {
		if s.Snap.Version != "" {
			order = append(order, s)
		}
	}
	byReturn := slices.Clone(order)
	slices.SortFunc(order, func(a, b Exchange) int { return a.Call.Compare(b.Call) })
	slices.SortFunc(byReturn, func(a, b Exchange) int { return a.Return.Compare(b.Return) })
	latest, i := int64(math.MinInt64), 0
	var now time.Time
	for _, s := range order {
		for ; i < len(byReturn) && byReturn[i].Return.Before(s.Call); i++ {
			latest = max(latest, position(byReturn[i]))
			if byReturn[i].Snap.Now.After(now) {
				now = byReturn[i].Snap.Now
			}
		}
		at := position(s)
		if at < latest || at == latest && at%2 == 0 {
			c.bad("version %s was shown to a call after a later one (%d) had been shown: a stale answer", s.Snap.Version, latest/2)
		}
		if c.OwnClock && s.Snap.Now.Before(now) {
			c.bad("the time went from %v to %v", now, s.Snap.Now)
		}
	}
}

// position returns the place of an exchange in the order of versions: for a swap that of the version that
// it made, and for a load the place after the version that it returned.
func position(s Exchange) int64 {
	v := 2 * number(s.Snap.Version)
	if s.Swap && s.Err == nil {
		return v
	}
	return v + 1
}
