// Package observe makes a [lease.Store] from an engine whose clock cannot be read, such as etcd or
// Kubernetes. The engine must be able to compare and swap.
//
// To write such a store, implement [Engine] and pass it to [New]. An Engine only loads and swaps
// entries. The Store computes when a lease ends. A program that only holds leases uses a finished
// store, such as package etcdlease.
//
// # Time
//
// The clocks of two machines may show different times. Therefore an engine stores how much time the
// lease had left when the entry was committed, instead of the time at which the lease ends. When a
// process first sees a version of the entry, it starts to count down the remaining time on its own
// monotonic clock.
//
// A process sees an entry only after the commit, so the end that it computes is never earlier than
// the end that was granted. The computed end is an upper bound. A process that waits for the end of a
// lease may notice the end late, but never too early. Two clocks may show different times, but their
// rates must be nearly equal.
//
// The disadvantage is a longer wait after a crash. A process that has just started may wait for the
// whole duration of a lease before it takes over the lease of a crashed holder.
//
// A holder needs a lower bound of the end. The two bounds differ by [lease.Snapshot.Uncertainty]. A
// process knows a lower bound in two cases:
//
//   - The process committed the version itself. The commit was after the process sent its request.
//   - An earlier request still returned an older version. The commit was after the process sent that
//     request.
//
// The process counts the lower bound from the time at which it sent a request that preceded the
// commit. The lower bound allows for other clocks that run faster, within [Options.MaxClockDrift].
//
// If two processes break a lease, they may compute different upper bounds of its end. Two breaks with
// the same ID and Epoch belong to the same incarnation of a lease. A process that sees two breaks of
// one incarnation uses the earlier end, because a break can only shorten a lease.
//
// # Memory
//
// A Store remembers when it first saw the current version of a lease. A Store remembers all watched
// names and a bounded number of other names. If a Store has forgotten a name, it starts a new
// countdown when it next reads the record of the name. A countdown that starts late can delay a
// take-over, but it cannot end a lease too early.
//
// The memory also saves round trips to the engine. For a request that changes the record, an
// [Authority] first tries a Swap based on the entry that the Store remembers, without a Load. So a
// renewal needs one round trip.
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

	// Load returns the current entry of the name. For an unknown name, Load returns an Available
	// entry. The Epoch of an unknown name is at least as high as every Epoch that was granted under
	// the name before. Load may write the entry of an unknown name.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is like Load, but is called before an acquire. It may write to the engine if that saves a
	// round trip.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap writes next if the entry still has the version old, and returns the committed entry. Its
	// errors are those of the Swap of a [lease.Store]. After a conflict, Swap returns the current
	// entry if it knows that entry. Otherwise it returns an entry without a Version.
	Swap(ctx context.Context, name, old string, next Kept) (Entry, error)

	// List returns the entries whose names begin with prefix. It follows the rules of [lease.Lister].
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]. A field that is zero selects the default of that field.
type Options struct {
	// Limits restrict the durations that an authority over the Store grants. If an entry has more
	// time left than the Limits allow, the Store shortens that time to the longest allowed duration.
	// The Store counts the shortened time from the moment when it first sees the entry. Default: no
	// limits.
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

// Swap replaces the record in old with next. It writes how much time next has left when the request
// is sent, instead of next.Until. After a conflict, Swap also returns the current Snapshot if the
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
	e, err := s.engine.Swap(ctx, name, old.Version, toKept(next, s.clock.pointAt(sent)))
	switch {
	case errors.Is(err, lease.ErrConflict) && e.Version != "":
		return s.see(name, e, sent, false), err
	case err != nil:
		return lease.Snapshot{}, err
	}
	return s.committed(name, e, sent), nil
}

// Watch calls the Watch of the engine. The Store does not forget a watched name until ctx ends, so
// that a process that waits for the end of the lease need not start its countdown again.
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
// does not remember the name, or if the remembered entry is as new as e or newer. With Note, the
// countdown for a renewed lease starts when the watch returns the renewal, even if no process reads
// the record at that time.
func (s *Store) Note(name string, e Entry) {
	e.Kept = s.clamp(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.observations.get(name, false); last != nil && e.Revision > last.Revision {
		// The entry that follows e may have been committed at any time after last.sent, because no
		// request has returned e.
		*last = last.replacedBy(newAged(last.sent, e, last.sent, s.clock.elapsed()), &s.clock)
	}
}

// see records the entry e. The argument sent is the elapsed time at which the request for e was sent.
// The result is the Snapshot of the newest known entry, which may be newer than e. If the newer entry
// was recorded before the request was sent, the engine has lost that entry, for example in a restore
// from a backup. The Store then starts again with e. If listed is true, no other name is forgotten to
// make room for the name.
func (s *Store) see(name string, e Entry, sent time.Duration, listed bool) lease.Snapshot {
	e.Kept = s.clamp(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	last := s.observations.get(name, !listed)
	switch {
	case last == nil && listed && s.observations.isFull():
		unkept := newUnaged(e, sent, now)
		last = &unkept
	case last == nil:
		last = s.observations.put(name, newUnaged(e, sent, now))
	case e.Revision == last.Revision:
		last.sent = max(last.sent, sent)
	case e.Revision > last.Revision:
		*last = last.replacedBy(newAged(last.sent, e, sent, now), &s.clock)
	case sent > last.at: // the engine has lost the newer entry
		*last = newUnaged(e, sent, now)
	}
	return last.snapshot(&s.clock, now)
}

// committed records the entry e, which a swap of this Store has written. The swap was sent at the
// elapsed time sent.
func (s *Store) committed(name string, e Entry, sent time.Duration) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	made := newAged(sent, e, sent, now)
	last := s.observations.get(name, true)
	switch {
	case last == nil:
		last = s.observations.put(name, made)
	case e.Revision >= last.Revision:
		*last = last.replacedBy(made, &s.clock)
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
