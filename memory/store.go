// Package memory is the embedded default [lease.Store]: it keeps the leases of one process.
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// It does not outlive the process and is not seen by another one. Within the process it is
// linearizable, keeps what it acknowledged until it may forget it, and never hands out a
// token twice; a process that starts again stays above its old tokens with [Options.Floor].
//
// # Time
//
// A Store runs on elapsed time: its time is the wall clock's at [New] plus what has elapsed
// since by the monotonic clock. Setting the machine's wall clock moves no lease. (Where the
// monotonic clock stands still while a machine is suspended, as on Linux, so do the leases.)
// Inside a testing/synctest bubble a Store made there follows the bubble's clock by itself.
//
// # Forgetting
//
// A Store starts no goroutine and forgets in the course of its swaps, a bounded number of
// records each, so that a swap takes a bounded time and a Store that nobody calls costs
// nothing but the memory that it has. It forgets
//
//   - the records that became Available the longest ago, of more than [Idle]: a million names
//     leased and released once leave no more than that behind, though no time passes;
//   - a record that has been Expired or Broken for [Options.Retention], when its turn to be
//     looked at comes. Every new name has two others looked at, if any can be due, so that a
//     Store remembers at most about twice as many records as it must.
//
// With the record the last ID is gone, as if the resource had been written to. The order of
// tokens is not: a name that the Store does not know begins above every token of every name
// that it forgot.
package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

// A Store keeps leases in memory. It is a [lease.Store] with a clock of its own, a
// [lease.Watcher], a [lease.Lister] and a [lease.Limiter], and may be used by any number of
// goroutines. Make one with [New]: the zero Store panics.
type Store struct {
	shards    [shards]shard // first, and so at the start of a cache line
	limits    lease.Limits
	retention time.Duration
	clock     clock
	absence   atomic.Pointer[entry] // what every unknown name shows; see forget
	forgotten atomic.Uint64         // numbers the versions of absences
	seed      maphash.Seed          // of the hash that chooses a name's shard
	term      term                  // tells the versions of this Store from those of any other
}

// The number of shards is a power of two, and such that two cores seldom meet in one.
const shards = 64

// DefaultRetention is the [Options.Retention] that zero stands for.
const DefaultRetention = 5 * time.Minute

// Options are the settings of a [Store]. Zero fields have the defaults that they state.
type Options struct {
	// Clock tells the time, which is after the zero time; nil is package time. What counts is
	// the time between two of its readings, on the monotonic clock if they carry it; while it
	// goes backward, the Store's time stands still. Now is called with a part of the Store
	// locked: it must not call the Store. The Leases of the Store run on the same clock.
	Clock lease.Clock

	// Limits are the durations that an authority over this Store grants; zero fields set no
	// limit.
	Limits lease.Limits

	// Floor is a token that every token of this Store is newer than: the newest that any
	// resource has seen from an earlier Store. Empty is below all. It must be below the newest
	// token there is, beyond which nothing could be granted.
	Floor lease.Token

	// Retention is how long a record is remembered at least after it became Expired or
	// Broken, and may still be renewed, or still tells its last ID; zero is
	// [DefaultRetention].
	Retention time.Duration
}

// newest is the newest token there is.
var newest = lease.TokenOf(math.MaxInt64)

// Validate returns nil if [New] takes the options, and otherwise a [*lease.FieldError] that
// names the field, its value and its bound. Nil options are valid.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var bad *lease.FieldError
	switch {
	case errors.As(o.Limits.Validate(), &bad):
		bad.Field = "Options." + bad.Field
		return bad
	case o.Floor != "" && errors.As(o.Floor.Validate(), &bad):
		bad.Field = "Options.Floor"
		return bad
	case o.Floor == newest:
		return &lease.FieldError{Field: "Options.Floor", Value: strconv.Quote(string(o.Floor)), Bound: "must be below that, the newest token there is", Code: lease.ErrOption}
	case o.Retention < 0:
		return &lease.FieldError{Field: "Options.Retention", Value: o.Retention.String(), Bound: "must not be negative", Code: lease.ErrOption}
	case o.Clock != nil && !o.Clock.Now().After(time.Time{}):
		return &lease.FieldError{Field: "Options.Clock", Value: o.Clock.Now().String(), Bound: "must be after the zero time", Code: lease.ErrOption}
	}
	return nil
}

// New returns an empty Store. Nil options mean the defaults. It panics with the error of
// [Options.Validate] if there is one; options that are not written in the program, such as a
// Floor that was read from a file, should be checked with that first.
func New(o *Options) *Store {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	if o == nil {
		o = new(Options)
	}
	s := &Store{limits: o.Limits, retention: o.Retention, seed: maphash.MakeSeed()}
	if s.retention == 0 {
		s.retention = DefaultRetention
	}
	s.clock.start(o.Clock)
	s.term = newTerm(rand.Uint64())
	floor, _ := o.Floor.Epoch() // 0 if empty
	s.absence.Store(s.absent(floor))
	return s
}

// Limits returns the Limits that the Store was made with.
func (s *Store) Limits() lease.Limits { return s.limits }

// Load returns the record under name and the Store's time. It fails only if the context is
// done or the name is not one.
func (s *Store) Load(ctx context.Context, name string) (snap lease.Snapshot, err error) {
	if err := ctx.Err(); err != nil {
		return snap, err
	}
	hash := s.hash(name)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, err := s.find(sh, hash, name)
	if err != nil {
		return snap, err
	}
	now, _ := s.clock.now()
	s.show(e, &snap, now)
	return snap, nil
}

// Swap puts next in the place of the record that old shows, if it is still there and in the
// same state: a record that has come to its Until since old.Now is a conflict, so that no
// decision takes effect after a moment at which another was possible. A conflict comes with
// the current Snapshot.
//
// A done context, a name that is not one, a next that [lease.Record.Validate] refuses, and one
// with a lower Epoch than the record's are errors that change nothing.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	if err := ctx.Err(); err != nil {
		return snap, err
	}
	if err := next.Validate(); err != nil {
		return snap, err
	}
	hash := s.hash(name)
	sh := s.shard(hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e, err := s.find(sh, hash, name)
	if err != nil {
		return snap, err
	}
	now, elapsed := s.clock.now()
	switch {
	case old.Version == "" || old.Version != e.version || e.ended(old.Now) != e.ended(now):
		s.show(e, &snap, now)
		return snap, lease.ErrConflict
	case next.Epoch < e.record.Epoch:
		return snap, &lease.FieldError{Field: "Record.Epoch", Value: strconv.FormatUint(next.Epoch, 10),
			Bound: fmt.Sprintf("must not fall below %d", e.record.Epoch), Code: lease.ErrCorrupt}
	}
	if !next.Until.IsZero() && !now.Before(next.Until) {
		sh.rest = 0 // a record that is over already, as a machine that was asleep may write it
	}
	e = s.put(sh, hash, name, e, next, now, elapsed)
	s.show(e, &snap, now)
	return snap, nil
}

// put puts next in the place of the record of e, or of the absence that e is, and signals the
// watches of the name. It forgets what is due in the course of that, which may be the entry that
// it returns. The mutex is held.
func (s *Store) put(sh *shard, hash uint64, name string, e *entry, next lease.Record, now time.Time, elapsed time.Duration) *entry {
	sh.swaps++
	looks := 0
	switch {
	case e.absent():
		e, looks = sh.add(hash, name), 2
	case sh.swaps%8 == 0:
		looks = 1 // where no new name comes, old ones are forgotten too
	}
	sh.put(e, next, sh.swaps, elapsed)
	sh.signal(name)
	s.sweep(sh, looks, now, elapsed)
	return e
}

// show fills the snapshot, where it is: copies of one are dear. The text of a version is made when
// the version is first shown. The mutex of the entry's shard is held.
func (s *Store) show(e *entry, snap *lease.Snapshot, now time.Time) {
	if e.version == "" {
		e.version = s.term.version(ofSwap, e.number)
	}
	snap.Record, snap.Version, snap.Now = e.record, e.version, now
}

// hash chooses the shard of a name, and its place there.
func (s *Store) hash(name string) uint64 {
	s.check()
	return maphash.String(s.seed, name)
}

// check panics if New did not make the Store.
func (s *Store) check() {
	if s.seed == (maphash.Seed{}) {
		panic(notMade)
	}
}

const notMade = "memory: use of a zero Store: New makes one"

func (s *Store) shard(hash uint64) *shard { return &s.shards[hash%shards] }

// find returns the entry of the name, or the absence if there is none.
func (s *Store) find(sh *shard, hash uint64, name string) (*entry, error) {
	if e := sh.entry(hash, name); e != nil {
		return e, nil
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	return s.absence.Load(), nil
}
