package memory

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/clock"
)

// A Store keeps leases in memory, and has its own clock. A Store implements [lease.Store], [lease.Watcher],
// [lease.Lister] and [lease.Limiter], and is safe for concurrent use. Make a Store with [New], because the
// methods of a zero Store panic.
type Store struct {
	shards    [shards]shard // the first field, so that it starts at a cache line
	limits    lease.Limits
	retention time.Duration
	clock     clock.Stopwatch
	absence   atomic.Pointer[entry] // the common entry of all unknown names; see newAbsence
	forgotten atomic.Uint64         // the number of absences so far; each absence uses it in its version
	seed      maphash.Seed          // the seed of the hash that selects the shard of a name
	id        storeID               // distinguishes the versions of this Store from those of other Stores
}

// shards is the number of shards. With 64 shards, two cores seldom need the same shard at once.
const shards = 64

// DefaultRetention is the default of [Options.Retention].
const DefaultRetention = 5 * time.Minute

// Options configure a [Store]. A nil *Options means the defaults. If a field is zero, its default is used.
type Options struct {
	// Clock is the clock of the Store and of the Sessions that [Store.Lease] returns. The time of the Clock
	// must be after the zero time. If the Clock goes backward, the time of the Store stands still until the
	// Clock has caught up. The Store holds a lock while it calls Clock.Now, so Clock.Now must not call the
	// Store. Default: the clock of package time.
	Clock lease.Clock

	// Limits restrict the durations and break periods that an authority grants in this Store.
	// Default: no limits.
	Limits lease.Limits

	// Floor is older than every token that this Store issues. After a restart, set Floor to the newest token
	// that any resource has seen. New panics if no token is newer than Floor. Default: the empty token, which
	// is older than all other tokens.
	Floor lease.Token

	// Retention is the shortest time for which the Store keeps a record after the lease has become Expired or
	// Broken. As long as the Store keeps an Expired record, the last holder can still renew the lease.
	// Default: [DefaultRetention].
	Retention time.Duration
}

// Validate returns nil if [New] accepts the options, which may be nil. Otherwise Validate returns a
// [*lease.FieldError] that names the field, its value and its bound.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	_, err := engine.CheckOptions(o.Limits, 0, o.Floor, engine.HighestFloor)
	switch {
	case err != nil:
	case o.Retention < 0:
		err = engine.OptionError("Retention", o.Retention.String(), "must not be negative")
	case o.Clock != nil && !o.Clock.Now().After(time.Time{}):
		err = engine.OptionError("Clock", o.Clock.Now().String(), "must be after the zero time")
	}
	return err
}

// New returns an empty Store. If o is nil, the Store uses the defaults. If [Options.Validate] returns an
// error, New panics with that error. Call Validate first if an option comes from outside the program, such as
// a Floor that was read from a file.
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
	s.clock.Start(o.Clock)
	s.id = newStoreID(rand.Uint64())
	lowest, _ := o.Floor.Epoch() // 0 if Floor is empty
	s.absence.Store(s.newAbsence(lowest))
	return s
}

// Limits returns the Limits of the Store.
func (s *Store) Limits() lease.Limits { return s.limits }

// Load returns the record with the given name. The Snapshot also contains the current time of the Store. Load
// returns an error if ctx is done, or if [lease.CheckName] rejects the name.
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
	now, _ := s.clock.Now()
	s.show(e, &snap, now)
	return snap, nil
}

// Swap replaces the record of the given name with the new record, the parameter next. It returns the new
// Snapshot. If the version of the record is no longer old.Version, or if the lease or its break period has
// ended since the time old.Now, Swap returns [lease.ErrConflict] and the current Snapshot.
//
// If Swap returns an error, the record is unchanged. Apart from a conflict, there are four errors:
//
//   - ctx is done.
//   - [lease.CheckName] refuses the name.
//   - [lease.Record.Validate] refuses the new record.
//   - The Epoch of the new record is lower than that of the stored record. The error is a [*lease.FieldError]
//     with the Code [lease.ErrCorrupt].
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
	now, elapsed := s.clock.Now()
	switch {
	case old.Version == "" || old.Version != e.version || e.ended(old.Now) != e.ended(now):
		s.show(e, &snap, now)
		return snap, lease.ErrConflict
	case next.Epoch < e.record.Epoch:
		return snap, next.ValidateAfter(e.record)
	}
	if !next.Until.IsZero() && !now.Before(next.Until) {
		sh.rest = 0 // the state in next has ended already, for example because the computer was suspended
	}
	e = s.put(sh, hash, name, e, next, now, elapsed)
	s.show(e, &snap, now)
	return snap, nil
}

// The method put stores the record in the entry e, or in a new entry if the Store has no record of the name.
// Then it signals the watches of the name, and calls the method sweep to delete some old records. If the
// method sweep deletes the record that was just stored, the returned entry is no longer in the shard. The
// caller holds the shard's mutex.
func (s *Store) put(sh *shard, hash uint64, name string, e *entry, next lease.Record, now time.Time, elapsed time.Duration) *entry {
	sh.swaps++
	checks := 0
	switch {
	case e.isAbsence():
		e, checks = sh.add(hash, name), 2
	case sh.swaps%8 == 0:
		checks = 1 // delete old records even if there are no new names
	}
	sh.put(e, next, sh.swaps, elapsed)
	sh.signal(name)
	s.sweep(sh, checks, now, elapsed)
	return e
}

// show sets *snap to the record and version of e. The version is formatted only when it is first needed. The
// caller holds the mutex of the entry's shard.
func (s *Store) show(e *entry, snap *lease.Snapshot, now time.Time) {
	if e.version == "" {
		e.version = s.id.version(swapKind, e.number)
	}
	snap.Record, snap.Version, snap.Now = e.record, e.version, now
}

// The method hash returns the hash of a name. This hash selects a shard, and is the key of the entry in that
// shard.
func (s *Store) hash(name string) uint64 {
	s.check()
	return maphash.String(s.seed, name)
}

// check panics if the Store was not made by New.
func (s *Store) check() {
	if s.seed == (maphash.Seed{}) {
		panic(notMade)
	}
}

const notMade = "memory: use of a zero Store: New makes one"

func (s *Store) shard(hash uint64) *shard { return &s.shards[hash%shards] }

// The method find returns the entry of the name. If the Store has no record of the name, the method returns
// the common entry of all unknown names. The caller holds the mutex of the shard.
func (s *Store) find(sh *shard, hash uint64, name string) (*entry, error) {
	if e := sh.entry(hash, name); e != nil {
		return e, nil
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	return s.absence.Load(), nil
}
