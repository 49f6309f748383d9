package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// A Backend reads and writes the entries of leases at a server whose clock cannot be read. A Backend must
// follow the rules of a [lease.Store], except those about time. Its methods must be safe for concurrent use.
type Backend interface {
	lease.Watcher

	// Load returns the current entry of the name. If the server has none, Load returns an entry in the state
	// Available whose Epoch is at least as high as every Epoch that was granted under this name before. Load
	// may write that entry to the server.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is like Load, but is called before an acquire. Open may also write an entry, if this write reduces
	// the number of requests that the acquire needs.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap replaces the entry of the given name with the given record, and returns the committed entry. It
	// does so only if the current entry still has the given version. For the errors, see [lease.Store]. After
	// a conflict, Swap returns the current entry, or an entry without a Version if the Backend does not know
	// the current one.
	Swap(ctx context.Context, name, old string, next Retained) (Entry, error)

	// List returns the entries whose names begin with prefix, by the rules of [lease.Lister].
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]. If a field is zero, its default is used.
type Options struct {
	// Limits restrict the durations of the leases that an authority grants in this Store. If an entry has
	// more time left than [lease.Limits.Bound] allows, the Store counts down only the allowed time, from its
	// first reading of the entry. For a finite lease, the allowed time is MaxDuration, even while the lease
	// is breaking. For an infinite lease that is breaking, the allowed time is MaxPeriod. All Stores at one
	// server should have the same Limits. Default: no limits.
	Limits lease.Limits

	// Names is the largest number of lease names that the Store remembers, not counting watched names. Beyond
	// that number, the Store drops the name that was used least recently. If the Store already remembers this
	// many names, it does not remember a name that only [Store.List] has returned. Default: [DefaultNames].
	Names int

	// MaxClockDrift limits how much faster or slower than real time the clock of a process may run. With
	// 0.001, the clocks of all processes must run at rates from 0.999 to 1.001. The Store allows for this
	// drift in its lower bounds. MaxClockDrift must be at least 0 and below 1. Default:
	// [DefaultMaxClockDrift].
	MaxClockDrift float64

	// Floor is older than every token that this Store grants from now on, even for a name that already has a
	// record. When leases move here from another store, set Floor to the newest token that any resource has
	// seen. All Stores at one server must have the same Floor, and later Stores must not have an older one.
	// Default: the empty token, which is older than all other tokens.
	Floor lease.Token

	// Gate decides when each call of a method of the Backend may begin. The methods Watch and List are
	// exceptions, and begin at once. If their requests should wait for the Gate as well, the Backend itself
	// must call [Gate.Enter] before each of these requests. Default: every call begins at once.
	Gate *Gate

	// Clock is the clock of the Store. Default: the clock of package time.
	Clock lease.Clock
}

// DefaultMaxClockDrift is the default of [Options.MaxClockDrift], and of the option of the same name of a
// session.Session.
const DefaultMaxClockDrift = 0.001

// DefaultNames is the default of [Options.Names]. A name needs about 500 bytes of memory.
const DefaultNames = 1 << 16

// A Store is a [lease.Store] that uses a [Backend]. It is safe for concurrent use.
type Store struct {
	backend Backend
	limits  lease.Limits
	floor   uint64 // the epoch of Options.Floor
	gate    *Gate
	clock   stopwatch

	mu           sync.Mutex
	observations observations
	revisions    revisions
	stopReading  context.CancelFunc // ends the goroutine that reads revisions; nil if it does not run
}

// NewStore returns a Store that uses b. A nil opts means the defaults. NewStore sends no request. If b is
// nil, or an option is out of range, NewStore returns a [*lease.FieldError].
func NewStore(b Backend, opts *Options) (*Store, error) {
	if b == nil {
		return nil, fields.Missing("NewStore.b")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	lowest, err := CheckOptions(o.Limits, o.Names, o.Floor, HighestFloor)
	if err != nil {
		return nil, err
	}
	if !(o.MaxClockDrift >= 0 && o.MaxClockDrift < 1) { // written so that NaN is refused
		return nil, OptionError("MaxClockDrift", fmt.Sprint(o.MaxClockDrift), "must be from 0 to below 1")
	}
	if o.MaxClockDrift == 0 {
		o.MaxClockDrift = DefaultMaxClockDrift
	}
	if o.Names == 0 {
		o.Names = DefaultNames
	}
	s := &Store{backend: b, limits: o.Limits, floor: lowest, gate: o.Gate, observations: newObservations(o.Names)}
	s.clock.start(o.Clock, o.MaxClockDrift)
	return s, nil
}

// Limits returns the limits that were passed to [NewStore].
func (s *Store) Limits() lease.Limits { return s.limits }

// Load returns the record with the given name. The Until of the record is the end that this Store has
// computed, as the package documentation describes.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.load(ctx, name, s.backend.Load)
}

func (s *Store) load(ctx context.Context, name string, load reading) (lease.Snapshot, error) {
	e, sentAt, err := s.read(ctx, name, load)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.see(name, e, sentAt, false), nil
}

// Observe calls the given function to read the entry of the name, and stores this entry as Load does. A
// Backend that polls calls Observe for each poll of a watch, so that the grace of a break counts from the
// last poll, and not from the last renewal. Observe returns the error of the function, and stores nothing if
// the entry has no Version.
func (s *Store) Observe(ctx context.Context, name string, read func(ctx context.Context, name string) (Entry, error)) error {
	e, sentAt, err := s.read(ctx, name, read)
	if err == nil && e.Version != "" {
		s.see(name, e, sentAt, false)
	}
	return err
}

type reading = func(ctx context.Context, name string) (Entry, error)

// The method read returns the entry that f reads, and the time on the Store's clock at which f was called.
func (s *Store) read(ctx context.Context, name string, f reading) (e Entry, sentAt time.Duration, err error) {
	if err := lease.CheckName(name); err != nil {
		return e, 0, err
	}
	err = s.gate.Do(ctx, Request{}, func() (err error) {
		sentAt = s.clock.Elapsed()
		e, err = f(ctx, name)
		return err
	})
	return e, sentAt, err
}

// Swap replaces the record of the given name with the given new record, and returns the new Snapshot. If the
// version of the record is no longer old.Version, Swap returns [lease.ErrConflict], with the Snapshot of the
// current entry if the Backend has returned that entry. If the new record is a grant, Swap raises its Epoch
// above [Options.Floor].
//
// Swap does not write the field Until of the new record. Instead, it writes how much time is left until then,
// rounded up to a multiple of 1 ms, and at least 1 ms. The time of a lease that is granted or renewed counts
// from old.Now, so that a request that waits for the Gate does not shorten the lease. If [lease.CheckName]
// rejects the name, or if [lease.Record.ValidateAfter] rejects the new record, Swap returns the error and
// sends no request.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := CheckSwap(name, old, next); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch > old.Record.Epoch { // this is a grant
		next.Epoch = max(next.Epoch, s.floor+1)
	}
	var e Entry
	var sentAt time.Duration
	err := s.gate.Swap(name, old.Record, next, func(r Request) error {
		return s.gate.Do(ctx, r, func() (err error) {
			sentAt = s.clock.Elapsed()
			now := s.clock.PointAt(sentAt)
			if next.State == lease.Leased && !next.Until.Equal(old.Record.Until) { // a grant or a renewal, and not a change, which keeps the end
				now = old.Now // the lease begins when the request is sent, however long it has waited
			}
			e, err = s.backend.Swap(ctx, name, old.Version, toRetained(next, now))
			return err
		})
	})
	switch {
	case errors.Is(err, lease.ErrConflict) && e.Version != "":
		return s.see(name, e, sentAt, false), err
	case err != nil:
		return lease.Snapshot{}, err
	}
	return s.recordSwap(name, e, sentAt), nil
}

// Watch calls the Watch of the Backend. Until ctx ends, the Store remembers when it first read the current
// version of the lease. If the Store forgot that time, it would have to count down the remaining time of the
// lease again, and a waiting process would wait longer. If the Backend is a [RevisionReader], the Store also
// reads the Revision while it holds a watched lease. After a break, the holder can then use most of its grace
// period.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	signals, err := s.backend.Watch(ctx, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.observations.pin(name)
	s.startReading()
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.observations.unpin(name); len(s.observations.pins) == 0 && s.stopReading != nil {
			s.stopReading()
			s.stopReading = nil
		}
	})
	return signals, nil
}

// List returns the leases that the Backend lists. The Until of each record is the end that this Store has
// computed.
//
// The Store starts a countdown for each listed lease that it does not remember, so that a later List can
// report the lease as expired. But if the number of remembered names has reached [Options.Names], the Store
// starts no such countdown, because List must not cause the Store to drop other names. Without a countdown,
// every List reports the same remaining time for the lease, even if the lease has ended. To find out which
// leases are still renewed, call List twice, and wait in between for as long as the longest lease lasts.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		sentAt := s.clock.Elapsed() // every request of the list is sent later
		for e, err := range s.backend.List(ctx, prefix) {
			entry := lease.Entry{Name: e.Name}
			switch {
			case err == nil:
				entry = ListEntry(e.Name, s.see(e.Name, e.Entry, sentAt, true))
			case e.Name == "":
				return err
			}
			if !yield(entry, err) {
				return nil
			}
		}
		return nil
	})
}

// Note stores e as the newest entry of the name. A Backend calls Note with the entries that its watch
// receives, so that the countdown of a renewed lease starts at once, even if no process reads the record. A
// call of Note has no effect if the Store does not remember the name, or if the Store already knows e or a
// newer entry.
func (s *Store) Note(name string, e Entry) {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.observations.get(name, false); last != nil && e.Revision > last.Revision {
		// No request of the Store has returned the entry e, so the Store does not know for how long e
		// remained the newest entry. The lower bound for the commit of e therefore also becomes the lower
		// bound for the commit of the next entry.
		earliest := s.revisions.earliest(e.Revision, last.nextAfter)
		*last = last.mergedWith(newAged(e, earliest, s.clock.Elapsed(), earliest), &s.clock)
	}
}

// This method must be called with each entry e that a request of the Store has returned. The method stores e,
// and returns the Snapshot of the newest known entry, which can be newer than e. The request was sent at the
// elapsed time sentAt or later. If the Store already knew a newer entry at that time, the server has lost
// that entry, for example because the server was restored from a backup. The Store then replaces the newer
// entry with e. If fromList is true, e comes from a list, and must not displace the entry of another name.
func (s *Store) see(name string, e Entry, sentAt time.Duration, fromList bool) lease.Snapshot {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Elapsed()
	last := s.observations.get(name, !fromList)
	switch {
	case last == nil && fromList && s.observations.isFull():
		unkept := newUnaged(e, sentAt, now)
		last = &unkept
	case last == nil:
		last = s.observations.put(name, newUnaged(e, sentAt, now))
	case e.Revision == last.Revision && e.Version == last.Version:
		last.nextAfter = max(last.nextAfter, sentAt)
	case e.Revision > last.Revision:
		*last = last.mergedWith(newAged(e, sentAt, now, s.revisions.earliest(e.Revision, last.nextAfter)), &s.clock)
	case sentAt > last.at: // the server has lost the newer entry
		*last = newUnaged(e, sentAt, now)
	}
	return last.snapshot(&s.clock, now)
}

// recordSwap records the entry e, which a [Store.Swap] has written with a request sent at the time sentAt.
func (s *Store) recordSwap(name string, e Entry, sentAt time.Duration) lease.Snapshot {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Elapsed()
	made := newAged(e, sentAt, now, sentAt)
	made.own = e.Record.State == lease.Leased
	s.revisions.add(e.Revision, sentAt)
	last := s.observations.get(name, true)
	switch {
	case last == nil:
		last = s.observations.put(name, made)
	case e.Revision >= last.Revision:
		*last = last.mergedWith(made, &s.clock)
	default:
		last = &made // another call has already recorded a newer entry
	}
	return last.snapshot(&s.clock, now)
}

// The method remembered returns a Snapshot of the entry that the Store remembers for the name. If the Store
// does not remember the name, the result is the zero Snapshot.
func (s *Store) remembered(name string) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.observations.get(name, true)
	if last == nil {
		return lease.Snapshot{}
	}
	return last.snapshot(&s.clock, s.clock.Elapsed())
}

// limited returns a copy of e whose duration and remaining time do not exceed the limits of the Store, unless
// the entry is foreign. If the entry is Unwritten, limited also adds the Floor to its Epoch. Otherwise the
// Store could grant the same tokens above the Floor again after the entry of the name was deleted.
func (s *Store) limited(e Entry) Entry {
	if e.Unwritten {
		e.Record.Epoch = min(e.Record.Epoch+s.floor, math.MaxInt64)
	}
	if !e.Foreign {
		e.Record.Duration, e.Left = s.limits.Bound(e.Record.Duration, e.Left)
	}
	return e
}
