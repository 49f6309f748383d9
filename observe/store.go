package observe

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// An Engine stores an entry for each name. An Engine must follow the rules of a [lease.Store], except
// the rules about time. Its methods must be safe for concurrent use by several goroutines.
type Engine interface {
	lease.Watcher

	// Load returns the current entry of the name. If the engine stores no entry under the name,
	// Load returns an entry in the state Available. The Epoch of this entry is at least as high as
	// every Epoch that was granted under the same name before. Load may store this entry.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is like Load, but is called before an acquire. It may write to the engine if that saves a
	// round trip.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap stores next under the name if the current entry of the name still has the version old.
	// Then Swap returns the committed entry. Swap returns the same errors as the Swap of a
	// [lease.Store]. After a conflict, Swap returns the current entry if Swap knows it, and
	// otherwise an entry without a Version.
	Swap(ctx context.Context, name, old string, next Kept) (Entry, error)

	// List returns the entries whose names begin with prefix. It follows the rules of [lease.Lister].
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]. A field that is zero selects the default of that field.
type Options struct {
	// Limits restrict the durations of the leases that an authority grants in this Store. If an
	// entry has more time left than [lease.Limits.Bound] allows, the Store counts down only the
	// allowed time, from the moment when the Store first reads the entry. MaxDuration is the
	// allowed time for a finite lease and for the break of a finite lease. MaxPeriod is the allowed
	// time for the break of an infinite lease. All Stores over one engine should have the same
	// Limits. Default: no limits.
	Limits lease.Limits

	// Names is the largest number of lease names that the Store remembers. Watched names do not
	// count. The Store forgets the least recently used name first. Default: [DefaultNames].
	Names int

	// MaxClockDrift limits how much faster or slower than real time the clock of a process may run.
	// If MaxClockDrift is 0.001, the clocks of all processes must run at rates from 0.999 to 1.001.
	// The Store allows for this drift in its lower bounds. The value must be at least 0 and below
	// 1. Default: [DefaultMaxClockDrift].
	MaxClockDrift float64

	// Clock is the clock of the Store. Default: the clock of package time.
	Clock lease.Clock
}

// DefaultMaxClockDrift is the default of [Options.MaxClockDrift]. It is also the default of a
// session.Session.
const DefaultMaxClockDrift = 0.001

// DefaultNames is the default of [Options.Names]. A name needs about 500 bytes of memory.
const DefaultNames = 1 << 16

// A Store is a [lease.Store] over an [Engine]. It is safe for use by several goroutines at once.
type Store struct {
	engine Engine
	limits lease.Limits
	clock  clock

	mu           sync.Mutex
	observations observations
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
	if err := o.Limits.Validate(); err != nil {
		return nil, err
	}
	if o.Names < 0 {
		return nil, &lease.FieldError{Field: "Options.Names", Value: strconv.Itoa(o.Names), Bound: "must not be negative", Code: lease.ErrOption}
	}
	if !(o.MaxClockDrift >= 0 && o.MaxClockDrift < 1) { // also for a NaN
		return nil, &lease.FieldError{Field: "Options.MaxClockDrift", Value: fmt.Sprint(o.MaxClockDrift), Bound: "must be from 0 to below 1", Code: lease.ErrOption}
	}
	if o.MaxClockDrift == 0 {
		o.MaxClockDrift = DefaultMaxClockDrift
	}
	if o.Names == 0 {
		o.Names = DefaultNames
	}
	s := &Store{engine: e, limits: o.Limits, observations: newObservations(o.Names)}
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
	sentAt := s.clock.elapsed()
	e, err := load(ctx, name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.see(name, e, sentAt, false), nil
}

// Swap replaces the record in old with the record next. The engine does not store the time
// next.Until. Instead, the engine stores how much time is left until next.Until at the moment when
// Swap sends the request. The time left is rounded up to a multiple of 1 ms, and is at least 1 ms.
// If [lease.CheckName] refuses the name, or if [lease.Record.ValidateAfter] refuses the record
// next, Swap returns the error and sends no request. If the engine returns the current entry after
// a conflict, Swap returns the Snapshot of that entry with the error.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	if err := next.ValidateAfter(old.Record); err != nil {
		return lease.Snapshot{}, err
	}
	sentAt := s.clock.elapsed()
	e, err := s.engine.Swap(ctx, name, old.Version, toKept(next, s.clock.pointAt(sentAt)))
	switch {
	case errors.Is(err, lease.ErrConflict) && e.Version != "":
		return s.see(name, e, sentAt, false), err
	case err != nil:
		return lease.Snapshot{}, err
	}
	return s.recordSwap(name, e, sentAt), nil
}

// Watch calls the Watch of the engine. The Store does not forget a watched name until ctx ends. If
// the Store forgot a watched name, its countdown would start again, and a process that waits for
// the lease would wait longer.
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
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.observations.unpin(name)
	})
	return signals, nil
}

// List returns the leases that the engine lists. The Store computes the field Until of each record
// from its own observations of the record. If the Store does not remember a listed lease, it starts
// a countdown for the lease, unless it already remembers [Options.Names] names. A later list can
// then report that the lease has expired. A list never makes the Store forget another name.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if prefix != "" {
			if err := lease.CheckName(prefix); err != nil {
				yield(lease.Entry{}, err)
				return
			}
		}
		sentAt := s.clock.elapsed() // every request of the list is sent later
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

// Note records the entry e, which a watch of the engine has returned. Note does nothing if the Store
// has forgotten the name, or if it already knows e or a newer entry. After a call of Note for a
// renewal, the countdown of the renewed lease starts at once, even if no process reads the record at
// that time.
func (s *Store) Note(name string, e Entry) {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.observations.get(name, false); last != nil && e.Revision > last.Revision {
		// No request of the Store has returned e. The Store knows only that e was committed after
		// the time last.nextAfter. The same is true for the next entry after e.
		*last = last.mergedWith(newAged(e, last.nextAfter, s.clock.elapsed(), last.nextAfter), &s.clock)
	}
}

// see records the entry e, which a request of the Store has returned. The Store sent this request
// at the elapsed time sentAt or later. The method see returns the Snapshot of the newest known
// entry, which may be newer than e. But if the Store knew a newer entry already at sentAt, then the
// engine no longer had that entry when it answered with e, for example because the engine was
// restored from a backup. In that case, the Store forgets the newer entry and records e. If fromList is true, the entry e comes
// from a list, and the Store does not forget another name to make room for the name of e.
func (s *Store) see(name string, e Entry, sentAt time.Duration, fromList bool) lease.Snapshot {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
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
		*last = last.mergedWith(newAged(e, sentAt, now, last.nextAfter), &s.clock)
	case sentAt > last.at: // the engine has lost the newer entry
		*last = newUnaged(e, sentAt, now)
	}
	return last.snapshot(&s.clock, now)
}

// recordSwap records the entry e, which a call of [Store.Swap] has written. The Swap sent its
// request at the elapsed time sentAt.
func (s *Store) recordSwap(name string, e Entry, sentAt time.Duration) lease.Snapshot {
	e = s.limited(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	made := newAged(e, sentAt, now, sentAt)
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
// not remember the name, the method remembered returns the zero Snapshot.
func (s *Store) remembered(name string) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.observations.get(name, true)
	if last == nil {
		return lease.Snapshot{}
	}
	return last.snapshot(&s.clock, s.clock.elapsed())
}

// limited returns a copy of e. If the duration or the remaining time in e exceeds the limits of the
// Store, the copy has the allowed value instead. The limits do not apply to a foreign entry.
func (s *Store) limited(e Entry) Entry {
	if !e.Foreign {
		e.Record.Duration, e.Left = s.limits.Bound(e.Record.Duration, e.Left)
	}
	return e
}
