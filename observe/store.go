// Package observe makes a [lease.Store] of an engine that can compare and swap but has no
// clock that could be asked: etcd, Kubernetes. It is for those who write such a store: implement
// [Engine], the reading and the conditional writing of one entry, and [New] adds the time.
// Programs that hold leases use the finished store, such as package etcdlease.
//
// # Time
//
// No point in time is ever written, because nobody could read it: the clocks of two machines
// agree on nothing. What is written is how long the lease had left at the commit. Whoever
// sees that version for the first time counts from there, on his own monotonic clock. Since
// the commit was before the sight, what he counts ends no earlier than the time that was
// granted: an upper bound, and right for a contender, who may only be late. So the skew of
// clocks does not matter, only their rates; and a newcomer may have to wait for one full
// duration before he takes over from the dead.
//
// A holder needs a bound from below, [lease.Snapshot.Uncertainty]. A version that an exchange did not
// yet show was committed after the sending of that exchange, and what an observer commits
// himself is committed after his sending; from there the time is certain, less what the
// faster of two clocks makes of it.
//
// A break only shortens. Two breaks of one incarnation, (ID, Epoch), may have been decided by
// people who saw different upper bounds; who sees both takes the earlier end.
//
// # Memory
//
// First sights are remembered, for a bounded number of names and for those that are watched. What is
// forgotten counts anew from the next sight, which again is late and never early. The memory also saves exchanges:
// an [Authority] begins a request that will write from the version last seen, so that a
// renewal is one swap.
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

// An Engine keeps entries under names. Its contract is that of [lease.Store], without the
// parts about time.
type Engine interface {
	lease.Watcher

	// Load returns the entry under a name as it is now. A name that is not known is Available,
	// with an Epoch no lower than any that was granted under this name before; it may be made
	// known by that.
	Load(ctx context.Context, name string) (Entry, error)

	// Open is Load for somebody who is about to lease the name: it may cost what a write does,
	// where that saves an exchange.
	Open(ctx context.Context, name string) (Entry, error)

	// Swap puts next in the place of the version old and returns the entry as committed. It
	// fails as the Swap of a [lease.Store]; with a conflict comes the current entry, or one
	// without a version.
	Swap(ctx context.Context, name, old string, next Kept) (Entry, error)

	// List is the List of a [lease.Lister], with entries as the engine keeps them.
	List(ctx context.Context, prefix string) iter.Seq2[NamedEntry, error]
}

// Options are the settings of a [Store]; zero fields have the defaults stated here.
type Options struct {
	// Limits are the durations that are granted; what is found to have more left than that
	// counts as having that much left from its first sight. Default: none.
	Limits lease.Limits

	// Names is for how many names first sights are remembered, besides those that are watched.
	// The name that was not used for the longest time is forgotten first. Default: [DefaultNames].
	Names int

	// MaxClockDrift bounds e: the clocks of all observers run at rates from 1-e to 1+e. It is what
	// a bound from below allows for. Default: [DefaultMaxClockDrift].
	MaxClockDrift float64

	// Clock tells the time. Default: package time.
	Clock lease.Clock
}

// DefaultMaxClockDrift is the default of [Options.MaxClockDrift], and that of a session.
const DefaultMaxClockDrift = 0.001

// DefaultNames is the default of [Options.Names]. Each costs some 500 bytes.
const DefaultNames = 1 << 16

// A Store is a [lease.Store] over an [Engine]. It may be used by any number of goroutines.
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

// Swap writes next with the time that is left of it now, at the sending. A conflict comes
// with the current Snapshot if the engine tells it.
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

// Watch is that of the engine. Until ctx ends, the Store does not forget the name: what it is watched
// for is mostly its end, and that would begin anew with another first sight.
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

// List shows what the engine lists, with the time that each lease has left as far as this Store has
// observed. A first sight in a list is remembered like any other, so that a later list shows that
// the lease has expired. But a list does not make the Store forget the first sight of another name.
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

// see takes note of an exchange that was sent at sent and showed e, and returns what is
// current under the name: e, or what another exchange has shown that came later. The exchange of a
// list takes no other name's place.
func (s *Store) see(name string, e Entry, sent time.Duration, listed bool) lease.Snapshot {
	e.Kept = s.clamp(e.Kept)
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

// committed takes note of a swap of this Store that was sent at sent and made e.
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
		last = &made // somebody has seen a later one already
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
func (s *Store) clamp(k Kept) Kept {
	most := s.limits.MaxDuration
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
