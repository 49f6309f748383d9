package observe

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/floor"
)

// An Engine stores an entry for each name. An Engine must follow the rules of a [lease.Store],
// except the rules about time. The methods of an Engine must be safe for concurrent use by several
// goroutines.
type Engine interface {
	lease.Watcher

	// Load returns the current entry of the name. If the engine stores no entry under the name,
	// Load returns an entry in the state Available. The Epoch of the Available entry is at least as
	// high as every Epoch that was granted under the same name before. Load may store the Available
	// entry.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is like Load, but is called before an acquire. Open may write to the engine if the write
	// saves a round trip.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap replaces the entry of the given name with a new entry (next), and returns the committed
	// entry. Swap replaces the entry only if its version is equal to the argument old. For the
	// errors of Swap, see [lease.Store]. After a conflict, Swap returns the current entry if Swap
	// knows the current entry. If Swap does not know the current entry, it returns an entry without
	// a Version.
	Swap(ctx context.Context, name, old string, next Kept) (Entry, error)

	// List returns the entries whose names begin with prefix. The method List follows the rules of
	// [lease.Lister].
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]. A field that is zero selects the default of that field.
type Options struct {
	// Limits restrict the durations of the leases that an authority grants in this Store. If an entry
	// has more time left than [lease.Limits.Bound] allows, the Store counts down only the allowed
	// time. The countdown starts when the Store first reads the entry. For a finite lease, the
	// allowed time is MaxDuration, even while the lease is breaking. For the break of an infinite
	// lease, the allowed time is MaxPeriod. All Stores over one engine should have the same Limits.
	// Default: no limits.
	Limits lease.Limits

	// Names is the largest number of lease names that the Store remembers. Watched names do not
	// count. The Store forgets the least recently used name first. If the Store already remembers
	// as many names as the option Names allows, [Store.List] starts no countdown for other names.
	// Default: [DefaultNames].
	Names int

	// MaxClockDrift limits how much faster or slower than real time the clock of a process may run.
	// If MaxClockDrift is 0.001, the clocks of all processes must run at rates from 0.999 to 1.001.
	// The Store allows for MaxClockDrift in its lower bounds. MaxClockDrift must be at least 0 and
	// below 1. Default: [DefaultMaxClockDrift].
	MaxClockDrift float64

	// Floor is older than every token that this Store grants from now on, even if a name has a record
	// already. Set Floor when leases move here from another store, to the newest token that any
	// resource has seen. All Stores over one engine must have the same Floor, and later Stores none
	// that is older. Default: the empty token, which is older than all other tokens.
	Floor lease.Token

	// Clock is the clock of the Store. Default: the clock of package time.
	Clock lease.Clock
}

// DefaultMaxClockDrift is the default of [Options.MaxClockDrift]. A session.Session has the same
// default.
const DefaultMaxClockDrift = 0.001

// DefaultNames is the default of [Options.Names]. A name needs about 500 bytes of memory.
const DefaultNames = 1 << 16

// A Store is a [lease.Store] over an [Engine]. A Store is safe for use by several goroutines at
// once.
type Store struct {
	engine Engine
	limits lease.Limits
	floor  uint64 // the epoch of Options.Floor
	clock  clock

	mu           sync.Mutex
	observations observations
	marks        marks
	stopMarking  context.CancelFunc // ends the goroutine that asks for revisions; nil if it does not run
}

// New returns a Store over the engine e. A nil opts means the defaults. New sends no request. If e is
// nil, or if an option is out of range, New returns a [*lease.FieldError].
func New(e Engine, opts *Options) (*Store, error) {
	if e == nil {
		return nil, lease.Missing("New.e")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	if bad := (*lease.FieldError)(nil); errors.As(o.Limits.Validate(), &bad) {
		bad.Field = "Options." + bad.Field
		return nil, bad
	}
	if o.Names < 0 {
		return nil, &lease.FieldError{Field: "Options.Names", Value: strconv.Itoa(o.Names), Bound: "must not be negative", Code: lease.ErrOption}
	}
	if !(o.MaxClockDrift >= 0 && o.MaxClockDrift < 1) { // refuses a NaN too
		return nil, &lease.FieldError{Field: "Options.MaxClockDrift", Value: fmt.Sprint(o.MaxClockDrift), Bound: "must be from 0 to below 1", Code: lease.ErrOption}
	}
	lowest, err := floor.Epoch(o.Floor, math.MaxInt64-1)
	if err != nil {
		return nil, err
	}
	if o.MaxClockDrift == 0 {
		o.MaxClockDrift = DefaultMaxClockDrift
	}
	if o.Names == 0 {
		o.Names = DefaultNames
	}
	s := &Store{engine: e, limits: o.Limits, floor: lowest, observations: newObservations(o.Names)}
	s.clock.start(o.Clock, o.MaxClockDrift)
	return s, nil
}

// Limits returns the limits that were given to [New].
func (s *Store) Limits() lease.Limits { return s.limits }

// Load returns the record with the given name. The Store computes the field Until of the record
// from its own observations of the record.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.load(ctx, name, s.engine.Load)
}

func (s *Store) load(ctx context.Context, name string, load func(context.Context, string) (Entry, error)) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	sentAt := s.clock.Elapsed()
	e, err := load(ctx, name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.see(name, e, sentAt, false), nil
}

// Swap replaces the record of the given name with a new record (next), and returns the new
// Snapshot. Swap replaces the record only if its version is still old.Version. If the version has
// changed, Swap returns [lease.ErrConflict]. If the engine returns the current entry after a
// conflict, Swap returns the Snapshot of the current entry together with ErrConflict. The engine
// does not store the time next.Until. Just before Swap sends the request, Swap computes how much
// time is left until next.Until, and the engine stores the time left. Swap rounds the time left up
// to a multiple of 1 ms, and to at least 1 ms. Swap calls [lease.CheckName] for the name, and
// [lease.Record.ValidateAfter] for the new record. If lease.CheckName or lease.Record.ValidateAfter
// returns an error, Swap returns the error and sends no request. If the new record is a grant, Swap
// raises its Epoch above [Options.Floor].
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	if err := next.ValidateAfter(old.Record); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch > old.Record.Epoch { // a grant
		next.Epoch = max(next.Epoch, s.floor+1)
	}
	sentAt := s.clock.Elapsed()
	e, err := s.engine.Swap(ctx, name, old.Version, toKept(next, s.clock.PointAt(sentAt)))
	switch {
	case errors.Is(err, lease.ErrConflict) && e.Version != "":
		return s.see(name, e, sentAt, false), err
	case err != nil:
		return lease.Snapshot{}, err
	}
	return s.recordSwap(name, e, sentAt), nil
}

// Watch calls the Watch of the engine. While the Store holds a watched lease and the engine is a
// [Reviser], the Store asks for the Revision of the engine, so that a break leaves the holder most of
// its grace. The Store does not forget a watched name until ctx ends. If
// the Store forgot a watched name, the countdown of the lease would start again, and a process that
// waits for the lease would wait longer.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	signals, err := s.engine.Watch(ctx, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.observations.pin(name)
	s.startMarking()
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.observations.unpin(name); len(s.observations.pins) == 0 && s.stopMarking != nil {
			s.stopMarking()
			s.stopMarking = nil
		}
	})
	return signals, nil
}

// List returns the leases that the engine lists. The Store computes the field Until of each record
// from its own observations of the record. When a list contains a lease that the Store does not
// remember, the Store starts a countdown for the lease, so that a later list can report the lease
// as expired. However, a Store that already remembers [Options.Names] names starts no countdown for
// other leases. Without a countdown, every list reports the same remaining time for the lease, even
// if the lease has ended. A list never makes the Store forget another name.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if prefix != "" {
			if err := lease.CheckName(prefix); err != nil {
				yield(lease.Entry{}, err)
				return
			}
		}
		sentAt := s.clock.Elapsed() // every request of the list is sent later
		for e, err := range s.engine.List(ctx, prefix) {
			entry := lease.Entry{Name: e.Name}
			if err == nil {
				snap := s.see(e.Name, e.Entry, sentAt, true)
				entry.Record, entry.Now = snap.Record.At(snap.Now), snap.Now
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// The engine calls Note with an entry that a watch has returned. Note stores the entry e as the
// newest entry of the name. Note does nothing if the Store has forgotten the name, or if the Store
// already knows e or a newer entry. If e is a renewal, the countdown of the renewed lease starts at
// once, even if no process reads the record.
func (s *Store) Note(name string, e Entry) {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.observations.get(name, false); last != nil && e.Revision > last.Revision {
		// No request of the Store has returned e. The next entry after e, if there is one, was also
		// committed after the time earliest.
		earliest := s.marks.earliest(e.Revision, last.nextAfter)
		*last = last.mergedWith(newAged(e, earliest, s.clock.Elapsed(), earliest), &s.clock)
	}
}

// The method see stores the entry e that a request of the Store has returned. The Store sent the
// request at the elapsed time sentAt or later. The result is the Snapshot of the newest known
// entry, which can be newer than e. If the Store already knew a newer entry at the time sentAt, the
// engine has lost the newer entry, for example because the engine was restored from a backup. The
// Store then forgets the newer entry and stores e. If the parameter fromList is true, the entry e
// comes from a list. For an entry from a list, the Store does not forget another name to make room
// for a new name.
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
	case e.Revision == last.Revision:
		last.nextAfter = max(last.nextAfter, sentAt)
	case e.Revision > last.Revision:
		*last = last.mergedWith(newAged(e, sentAt, now, s.marks.earliest(e.Revision, last.nextAfter)), &s.clock)
	case sentAt > last.at: // the engine has lost the newer entry
		*last = newUnaged(e, sentAt, now)
	}
	return last.snapshot(&s.clock, now)
}

// recordSwap records the entry e, which a call of [Store.Swap] has written. The parameter sentAt is
// the elapsed time at which the Swap sent its request.
func (s *Store) recordSwap(name string, e Entry, sentAt time.Duration) lease.Snapshot {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Elapsed()
	made := newAged(e, sentAt, now, sentAt)
	made.own = e.Record.State == lease.Leased
	s.marks.add(e.Revision, sentAt)
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

// remembered returns a Snapshot of the entry that was last recorded for the name. If the Store does
// not remember the name, remembered returns the zero Snapshot.
func (s *Store) remembered(name string) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.observations.get(name, true)
	if last == nil {
		return lease.Snapshot{}
	}
	return last.snapshot(&s.clock, s.clock.Elapsed())
}

// limited returns a copy of e. If the duration or the remaining time in e exceeds the limits of the
// Store, the copy has the allowed value instead. The limits do not apply to a foreign entry. The
// Epoch of an Unwritten entry begins above the Floor. If it were not added to the Floor, a name that
// is deleted could get the tokens above the Floor a second time.
func (s *Store) limited(e Entry) Entry {
	if e.Unwritten {
		e.Record.Epoch = min(e.Record.Epoch+s.floor, math.MaxInt64)
	}
	if !e.Foreign {
		e.Record.Duration, e.Left = s.limits.Bound(e.Record.Duration, e.Left)
	}
	return e
}
