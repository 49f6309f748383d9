// Package memory keeps the leases of one process in memory.
//
//	store := memory.New(nil)
//	l, err := store.Lease("jobs/nightly", nil)
//
// The leases end with the process, and other processes do not see them. Within the process a Store
// is linearizable and never issues a token twice. A process that restarts uses [Options.Floor] to
// issue only newer tokens than before.
//
// # Time
//
// The time of a Store is the wall clock's at [New] plus what has elapsed since by the monotonic clock.
// Setting the wall clock does not move a lease. On Linux the monotonic clock stops while the machine is
// suspended, and so does the time of the Store. A Store that is made inside a testing/synctest bubble
// follows the clock of the bubble.
//
// # Forgetting
//
// A Store has no goroutine. Each write also forgets a bounded number of records, so that it takes a
// bounded time. A Store forgets
//
//   - records that are Available, the oldest first, when there are more than [Idle]. A million names
//     that are leased and released once leave at most Idle records behind, even if no time passes.
//   - records that have been Expired or Broken for [Options.Retention]. Every new name checks two
//     other records, if any can be due. So a Store remembers at most about twice as many records as
//     it must.
//
// With a record its last ID is forgotten, as if the resource had been written. Tokens still do not
// fall: the first token of an unknown name is above every token of every name that was forgotten.
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

// A Store keeps leases in memory. It is a [lease.Store] with a clock of its own, a [lease.Watcher], a
// [lease.Lister] and a [lease.Limiter]. It is safe for use by several goroutines at once. Make one
// with [New]: the methods of the zero Store panic.
type Store struct {
	shards    [shards]shard // first, and so at the start of a cache line
	limits    lease.Limits
	retention time.Duration
	clock     clock
	absence   atomic.Pointer[entry] // stands for every unknown name; see forget
	forgotten atomic.Uint64         // numbers the versions of absences
	seed      maphash.Seed          // of the hash that selects a name's shard
	term      term                  // distinguishes the versions of this Store from those of others
}

// shards is the number of shards. With 64, two cores seldom need the same one.
const shards = 64

// DefaultRetention is the default of [Options.Retention].
const DefaultRetention = 5 * time.Minute

// Options are the settings of a [Store]. Nil Options mean the defaults, and so does every zero field.
type Options struct {
	// Clock is the clock of the Store and of its Leases. Its time must be after the zero time.
	// While it goes backward, the Store's time stands still. Now is called with a part of the
	// Store locked, and must not call the Store. Default: package time.
	Clock lease.Clock

	// Limits are the durations that an authority over this Store grants. Default: no limits.
	Limits lease.Limits

	// Floor is a token. Every token of this Store is newer. After a restart, set it to the newest
	// token that any resource has seen. It must be older than the newest possible token, above
	// which nothing can be granted. Default: the empty token, which is older than all.
	Floor lease.Token

	// Retention is how long a record is remembered at least after it became Expired or Broken. In
	// that time an expired lease can still be renewed. Default: [DefaultRetention].
	Retention time.Duration
}

// newest is the newest possible token.
var newest = lease.TokenOf(math.MaxInt64)

// Validate returns nil if [New] accepts the options. Otherwise it returns a [*lease.FieldError] that
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
		return &lease.FieldError{Field: "Options.Floor", Value: strconv.Quote(string(o.Floor)), Bound: "must be older than that, the newest possible token", Code: lease.ErrOption}
	case o.Retention < 0:
		return &lease.FieldError{Field: "Options.Retention", Value: o.Retention.String(), Bound: "must not be negative", Code: lease.ErrOption}
	case o.Clock != nil && !o.Clock.Now().After(time.Time{}):
		return &lease.FieldError{Field: "Options.Clock", Value: o.Clock.Now().String(), Bound: "must be after the zero time", Code: lease.ErrOption}
	}
	return nil
}

// New returns an empty Store. Nil options mean the defaults. New panics with the error of
// [Options.Validate] if there is one. Call Validate first if an option does not come from the program
// itself, such as a Floor that was read from a file.
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

// Limits returns the Limits of the Store.
func (s *Store) Limits() lease.Limits { return s.limits }

// Load returns the record under name and the Store's time. Its errors are that of a context that is done
// and that of [lease.CheckName].
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

// Swap replaces the record that old shows by next. It returns [lease.ErrConflict] and the current
// Snapshot if the record has changed since, or if it has come to its Until since old.Now.
//
// All other errors also mean that nothing was changed: that of a context that is done, those of
// [lease.CheckName] and of [lease.Record.Validate] of next, and a [*lease.FieldError] with the code
// [lease.ErrCorrupt] if the Epoch of next is lower than the record's.
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
		sh.rest = 0 // a record that is over already, such as a machine writes that was suspended
	}
	e = s.put(sh, hash, name, e, next, now, elapsed)
	s.show(e, &snap, now)
	return snap, nil
}

// put replaces the record of e by next, or adds an entry for the name if e is the absence. It signals
// the watches of the name, and forgets some records that are due. One of them may be the entry that it
// returns. The mutex is held.
func (s *Store) put(sh *shard, hash uint64, name string, e *entry, next lease.Record, now time.Time, elapsed time.Duration) *entry {
	sh.swaps++
	checks := 0
	switch {
	case e.absent():
		e, checks = sh.add(hash, name), 2
	case sh.swaps%8 == 0:
		checks = 1 // forget old names even if there are no new ones
	}
	sh.put(e, next, sh.swaps, elapsed)
	sh.signal(name)
	s.sweep(sh, checks, now, elapsed)
	return e
}

// show fills the snapshot in place, because copying one is slow. The text of a version is made when the
// version is first shown. The mutex of the entry's shard is held.
func (s *Store) show(e *entry, snap *lease.Snapshot, now time.Time) {
	if e.version == "" {
		e.version = s.term.version(ofSwap, e.number)
	}
	snap.Record, snap.Version, snap.Now = e.record, e.version, now
}

// hash returns the hash of a name, which selects its shard and its place there.
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

// find returns the entry of the name, or the absence if there is none. The mutex is held.
func (s *Store) find(sh *shard, hash uint64, name string) (*entry, error) {
	if e := sh.entry(hash, name); e != nil {
		return e, nil
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	return s.absence.Load(), nil
}
