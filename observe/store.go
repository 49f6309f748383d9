// Package observe makes a [lease.Store] from an engine whose clock cannot be read, such as etcd or
// Kubernetes. The engine must be able to compare and swap.
//
// To write such a store, implement [Engine] and pass it to [New]. An Engine only loads and swaps
// entries, and the Store adds the time. A program that only holds leases uses a finished store, such
// as package etcdlease.
//
// # Time
//
// The clocks of two machines may differ. Therefore an engine never stores a point in time. Instead,
// each entry has the time that the lease had left when the entry was committed. When a process first
// sees a version of the entry, it starts to count down the remaining time on its own monotonic clock.
//
// The commit was before the process saw the entry. So the end that the process computes is never
// earlier than the end that was granted. It is an upper bound. A process that waits for the end may
// be late, but it is never early. Two clocks may show different times, but their rates must be nearly
// equal.
//
// The disadvantage is a longer wait after a crash. A process that has just started may wait for a
// whole duration before it takes over the lease of a crashed holder.
//
// A holder needs a lower bound of the end. The lower bound is earlier than the upper bound by
// [lease.Snapshot.Uncertainty]. A process knows a lower bound in two cases:
//
//   - The process committed the version itself. The commit was after the process sent its request.
//   - An earlier request still returned an older version. The commit was after the process sent that
//     request.
//
// The process computes the lower bound from the time at which it sent that request. The lower bound
// allows for other clocks that are faster, within [Options.MaxClockDrift].
//
// A break can only shorten a lease. Breaks with the same ID and Epoch belong to one incarnation. If
// two processes break one incarnation, each of them may know a different upper bound. A process that
// sees both breaks uses the earlier end.
//
// # Memory
//
// A Store remembers when it first saw the current version of a lease. A Store remembers this time for
// a bounded number of names, and for all names that are watched. If the Store has forgotten a name,
// it starts to count down again when it next reads the name. A later start can delay a take-over, but
// it cannot end a lease too early.
//
// The memory also saves round trips to the engine. If a request has to write, an [Authority] starts
// with a Swap of the version that the Store remembers. So a renewal needs one round trip.
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

	// Load returns the current entry of the name. For an unknown name, Load returns an entry that is
	// Available. The Epoch of that entry is at least as high as every Epoch that was granted under
	// the name before. Load may write such an entry.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is like Load, but is called before an acquire. It may write to the engine if that saves a
	// round trip.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap replaces the entry with the version old, and returns the committed entry. Its errors are
	// those of the Swap of a [lease.Store]. After a conflict, Swap returns the current entry if it
	// knows that entry. Otherwise it returns an entry without a Version.
	Swap(ctx context.Context, name, old string, next Kept) (Entry, error)

	// List returns the entries whose names begin with prefix. It follows the rules of [lease.Lister].
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]. A field that is zero selects the default of that field.
type Options struct {
	// Limits restrict the durations that an authority over the Store grants. If an entry has more
	// time left than the Limits allow, the Store shortens that time to the longest allowed duration.
	// The shortened time starts when the Store first sees the entry. Default: no limits.
	Limits lease.Limits

	// Names is the number of names that the Store remembers, not counting the names that are watched.
	// The Store forgets the least recently used name first. Default: [DefaultNames].
	Names int

	// MaxClockDrift is the largest error of the rate of a clock. With a value of 0.001, the clocks of
	// all processes must run at rates from 0.999 to 1.001. The Store allows for this error in lower
	// bounds. The value must be at least 0 and below 1. Default: [DefaultMaxClockDrift].
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

// New returns a Store over the engine e. It sends no request. If e is nil, or if a field of o is out
// of range, New returns a [*lease.FieldError].
func New(e Engine, o Options) (*Store, error) {
	if e == nil {
		return nil, lease.Missing("New.e")
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

// Load returns the record with the given name. The Store computes Until from its own observations of
// the record.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.load(ctx, name, s.engine.Load)
}

func (s *Store) load(ctx context.Context, name string, load func(context.Context, string) (Entry, error)) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	sent := s.clock.elapsed()
	e, err := load(ctx, name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	return s.see(name, e, sent, false), nil
}

// Swap replaces the record in old with next. Instead of next.Until, it writes the time that next has
// left when the request is sent. After a conflict, Swap also returns the current Snapshot if the
// engine returns the current entry.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	if err := next.Validate(); err != nil {
		return lease.Snapshot{}, err
	}
	if next.Epoch < old.Record.Epoch {
		return lease.Snapshot{}, &lease.FieldError{Field: "Record.Epoch", Value: strconv.FormatUint(next.Epoch, 10),
			Bound: fmt.Sprintf("must not fall below %d", old.Record.Epoch), Code: lease.ErrCorrupt}
	}
	sent := s.clock.elapsed()
	e, err := s.engine.Swap(ctx, name, old.Version, keep(next, s.clock.time(sent)))
	switch {
	case errors.Is(err, lease.ErrConflict) && e.Version != "":
		return s.see(name, e, sent, false), err
	case err != nil:
		return lease.Snapshot{}, err
	}
	return s.committed(name, e, sent), nil
}

// Watch calls the Watch of the engine. The Store does not forget the name until ctx ends. Otherwise a
// process that waits for the end of the lease might have to count again from the beginning.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
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

// List returns the leases that the engine lists. The Store computes the Until of each record from its
// own observations. It remembers the entries of a list, so that a later list can report which leases
// have expired. A list never makes the Store forget another name.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if prefix != "" {
			if err := lease.CheckName(prefix); err != nil {
				yield(lease.Entry{}, err)
				return
			}
		}
		sent := s.clock.elapsed() // every request of the list is sent later
		for e, err := range s.engine.List(ctx, prefix) {
			entry := lease.Entry{Name: e.Name}
			if err == nil {
				snap := s.see(e.Name, e.Entry, sent, true)
				entry.Record, entry.Now = snap.Record.At(snap.Now), snap.Now
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// Note records an entry that a watch of the engine has returned. It ignores the entry if the Store
// does not remember the name, or if the remembered entry is at least as new. With Note, a process
// that waits for the end of a lease counts a renewal from the time at which the watch returned the
// renewal. The process need not wake up for that.
func (s *Store) Note(name string, e Entry) {
	e.Kept = s.clamp(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.observations.get(name, false); last != nil && e.Revision > last.Revision {
		// No request has returned e, so the version after e may have been committed at any time since
		// last.sent.
		*last = last.shortened(since(last.sent, e, last.sent, s.clock.elapsed()), &s.clock)
	}
}

// see records the entry e. The request that returned e was sent at the elapsed time sent. The result
// of see is the newest known Snapshot of the name. If another request has already returned a newer
// entry, that is the Snapshot of the newer entry. If listed is true, see does not make the Store
// forget another name.
func (s *Store) see(name string, e Entry, sent time.Duration, listed bool) lease.Snapshot {
	e.Kept = s.clamp(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	last := s.observations.get(name, !listed)
	switch {
	case last == nil && listed && s.observations.full():
		unkept := first(e, sent, now)
		last = &unkept
	case last == nil:
		last = s.observations.put(name, first(e, sent, now))
	case e.Revision == last.Revision:
		last.sent = max(last.sent, sent)
	case e.Revision > last.Revision:
		*last = last.shortened(since(last.sent, e, sent, now), &s.clock)
	}
	return last.snapshot(&s.clock, now)
}

// committed records the entry e, which a swap of this Store has written. The swap was sent at the
// elapsed time sent.
func (s *Store) committed(name string, e Entry, sent time.Duration) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	made := since(sent, e, sent, now)
	last := s.observations.get(name, true)
	switch {
	case last == nil:
		last = s.observations.put(name, made)
	case e.Revision >= last.Revision:
		*last = last.shortened(made, &s.clock)
	default:
		last = &made // another call has already recorded a newer entry
	}
	return last.snapshot(&s.clock, now)
}

// remembered returns the Snapshot that was last recorded for the name. It returns false if the Store
// does not remember the name.
func (s *Store) remembered(name string) (lease.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.observations.get(name, true)
	if last == nil {
		return lease.Snapshot{}, false
	}
	return last.snapshot(&s.clock, s.clock.elapsed()), true
}

// clamp cuts the time that an entry has left to the limits of the Store, as [lease.NewAuthority]
// does. It does not change a foreign entry.
func (s *Store) clamp(e Entry) Kept {
	k, most := e.Kept, s.limits.MaxDuration
	if e.Foreign {
		return k
	}
	if k.Record.State == lease.Breaking {
		most = max(most, s.limits.MaxPeriod)
	}
	if s.limits.MaxDuration > 0 && k.Left > most {
		k.Left = most
		if k.Record.Duration != lease.Infinite {
			k.Record.Duration = min(k.Record.Duration, s.limits.MaxDuration)
		}
	}
	return k
}
