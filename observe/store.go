// Package observe makes a [lease.Store] of an engine that can compare and swap but has no clock
// that can be asked, such as etcd or Kubernetes. To write such a store, implement [Engine], which
// reads one entry and writes it conditionally. [New] adds the time. Programs that hold leases use a
// finished store, such as package etcdlease.
//
// # Time
//
// The clocks of two machines may differ, so no point in time is ever written. Instead, an entry
// says how much time the lease had left when it was committed. A process that sees a version of the
// entry for the first time counts from then on, by its own monotonic clock.
//
// The commit was before that first observation. So the end that a process computes is not earlier
// than the end that was granted. It is an upper bound: a contender that waits for it may be late,
// and is never early. The times of the clocks do not matter, only their rates. The price is that a
// process which has just started may wait for a whole duration before it takes over a lease whose
// holder has crashed.
//
// A holder needs a lower bound, which is [lease.Snapshot.Uncertainty] before the upper one. A
// process knows a lower bound in two cases. It committed the version itself, and then the commit
// was after it sent the request. Or an earlier request did not show the version yet, and then the
// commit was after that request was sent. From there it counts, and allows for a clock that is
// faster by [Options.MaxClockDrift].
//
// A break can only shorten a lease. Two processes that break the same incarnation, one (ID, Epoch),
// may have seen different upper bounds. A process that sees both breaks takes the earlier end.
//
// # Memory
//
// A Store remembers its first observation of a bounded number of names, and of all names that are
// watched. A name that was forgotten is counted again from its next observation, which can only make
// the upper bound later. The memory also saves exchanges: an [Authority] begins a request that will
// write with the version that was seen last, so that a renewal is one swap.
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

// An Engine keeps entries under names. Its contract is that of [lease.Store], without the parts
// about time. It must be safe for use by several goroutines at once.
type Engine interface {
	lease.Watcher

	// Load returns the entry under a name as it is now. An unknown name is Available, and its Epoch
	// is not below any that was granted under it before. Load may write such an entry.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is Load before an acquire. It may cost as much as a write if that saves an exchange.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap replaces the version old by next, and returns the entry as committed. It fails as the
	// Swap of a [lease.Store] does. With a conflict it returns the current entry, or one without a
	// version.
	Swap(ctx context.Context, name, old string, next Kept) (Entry, error)

	// List is the List of a [lease.Lister], with entries as the engine keeps them.
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]. Zero fields have the defaults stated here.
type Options struct {
	// Limits are the durations that an authority over the Store grants. An entry that claims to
	// have more left counts as having the longest duration left, from its first observation.
	// Default: none.
	Limits lease.Limits

	// Names is the number of names for which the Store remembers its first observation, besides
	// those that are watched. The name that was not used for the longest time is forgotten first.
	// Default: [DefaultNames].
	Names int

	// MaxClockDrift bounds e: the clocks of all processes run at rates from 1-e to 1+e. Lower
	// bounds allow for it. Default: [DefaultMaxClockDrift].
	MaxClockDrift float64

	// Clock tells the time. Default: package time.
	Clock lease.Clock
}

// DefaultMaxClockDrift is the default of [Options.MaxClockDrift], and that of a session.
const DefaultMaxClockDrift = 0.001

// DefaultNames is the default of [Options.Names]. Each costs some 500 bytes.
const DefaultNames = 1 << 16

// A Store is a [lease.Store] over an [Engine]. It is safe for use by several goroutines at once.
type Store struct {
	engine Engine
	limits lease.Limits
	clock  clock

	mu     sync.Mutex
	sights sights
}

// New makes a Store. It makes no request. A nil Engine, and Options out of range, are a
// [*lease.FieldError].
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
	s := &Store{engine: e, limits: o.Limits, sights: newSights(o.Names)}
	s.clock.start(o.Clock, o.MaxClockDrift)
	return s, nil
}

// Limits returns the limits the Store was made with.
func (s *Store) Limits() lease.Limits { return s.limits }

// Load returns the record under name, with the time that it has left as far as this Store
// has observed.
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

// Swap writes next with the time that it has left at the sending. It returns the current Snapshot
// with a conflict, if the engine returns the entry.
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

// Watch is the Watch of the engine. Until ctx ends, the Store does not forget the name: a watcher
// mostly waits for the end of the lease, and that would be counted again.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	signals, err := s.engine.Watch(ctx, name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.sights.pin(name)
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sights.unpin(name)
	})
	return signals, nil
}

// List returns what the engine lists, with the time that each lease has left as far as this Store
// has observed. The Store remembers the first observations of a list, so that a later list shows
// which leases have expired. But a list does not make the Store forget another name.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if prefix != "" {
			if err := lease.CheckName(prefix); err != nil {
				yield(lease.Entry{}, err)
				return
			}
		}
		sent := s.clock.elapsed() // no exchange of the list is sent earlier
		for e, err := range s.engine.List(ctx, prefix) {
			shown := lease.Entry{Name: e.Name}
			if err == nil {
				snap := s.see(e.Name, e.Entry, sent, true)
				shown.Record, shown.Now = snap.Record.At(snap.Now), snap.Now
			}
			if !yield(shown, err) {
				return
			}
		}
	}
}

// Note takes note of an entry that a watch of the engine has shown, if it is newer than what was seen
// last. A contender that is not woken for a renewal then still counts from when the renewal was seen.
func (s *Store) Note(name string, e Entry) {
	e.Kept = s.clamp(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.sights.get(name, false); last != nil && e.Revision > last.Revision {
		// No exchange has shown e, so the version after e may be as old as e itself.
		*last = last.shortened(since(last.sent, e, last.sent, s.clock.elapsed()), &s.clock)
	}
}

// see takes note of an exchange that was sent at sent and showed e, and returns what is
// current under the name: e, or what another exchange has shown that came later. The exchange of a
// list takes no other name's place.
func (s *Store) see(name string, e Entry, sent time.Duration, listed bool) lease.Snapshot {
	e.Kept = s.clamp(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	last := s.sights.get(name, !listed)
	switch {
	case last == nil && listed && s.sights.full():
		unkept := first(e, sent, now)
		last = &unkept
	case last == nil:
		last = s.sights.put(name, first(e, sent, now))
	case e.Revision == last.Revision:
		last.sent = max(last.sent, sent)
	case e.Revision > last.Revision:
		*last = last.shortened(since(last.sent, e, sent, now), &s.clock)
	}
	return last.snapshot(&s.clock, now)
}

// committed notes that a swap of this Store, sent at sent, made e.
func (s *Store) committed(name string, e Entry, sent time.Duration) lease.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.elapsed()
	made := since(sent, e, sent, now)
	last := s.sights.get(name, true)
	switch {
	case last == nil:
		last = s.sights.put(name, made)
	case e.Revision >= last.Revision:
		*last = last.shortened(made, &s.clock)
	default:
		last = &made // another caller has seen a later one already
	}
	return last.snapshot(&s.clock, now)
}

// remembered returns the version that was last seen under the name, if it is remembered.
func (s *Store) remembered(name string) (lease.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.sights.get(name, true)
	if last == nil {
		return lease.Snapshot{}, false
	}
	return last.snapshot(&s.clock, s.clock.elapsed()), true
}

// clamp bounds what an entry can claim, as [lease.NewAuthority] does, from first sight.
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
