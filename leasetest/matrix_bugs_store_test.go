package leasetest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A storeBug is what goes wrong in a store with records in one state. Functions that are nil do nothing.
type storeBug struct {
	loaded  func(snap *lease.Snapshot)                  // changes the result of a load
	swapped func(snap *lease.Snapshot, err *error)      // changes the answer to a swap of such a record
	written func(next *lease.Record)                    // changes the record that a swap writes
	blind   bool                                        // a swap compares nothing
	skips   bool                                        // a swap is acknowledged, and not written
	late    bool                                        // a swap does not look at the time
	done    bool                                        // a swap under a done context is carried out, and is a conflict
	mute    bool                                        // a change of such a record is not signalled
	hides   bool                                        // a list does not show it
	twice   bool                                        // a list shows it twice
	listed  func(e *lease.Entry)                        // changes an entry of a list
	forgets bool                                        // it is forgotten though it must not be, or without its epoch
	reopens func(r *lease.Record) (keep bool)           // changes the record at a reopening
	stale   bool                                        // another client shows it as it saw it first
	version func(version string, r lease.Record) string // the version that is shown
}

// A wrappedStore is a plainStore with a bug for the records in one state.
type wrappedStore struct {
	*plainStore
	state string
	bug   *storeBug

	mu   sync.Mutex
	seen map[string]lease.Snapshot // by a client with stale answers
	late bool                      // it is a second client
}

// has reports whether the bug is about a record.
func (s *wrappedStore) has(snap lease.Snapshot) bool {
	return s.bug != nil && stateName(snap.Record.At(snap.Now)) == s.state
}

func (s *wrappedStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.plainStore.Load(ctx, name)
	if err != nil || !s.has(snap) {
		return snap, err
	}
	if s.bug.stale && s.late {
		s.mu.Lock()
		defer s.mu.Unlock()
		if old, ok := s.seen[name]; ok {
			return old, nil
		}
		s.seen[name] = snap
	}
	if s.bug.loaded != nil {
		s.bug.loaded(&snap)
	}
	if s.bug.version != nil {
		snap.Version = s.bug.version(snap.Version, snap.Record)
	}
	return snap, nil
}

func (s *wrappedStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	now, err := s.plainStore.Load(context.WithoutCancel(ctx), name)
	if err != nil || !s.has(now) && !s.has(lease.Snapshot{Record: next, Now: now.Now}) {
		return s.plainStore.Swap(ctx, name, old, next)
	}
	leaves := s.has(now)
	switch {
	case leaves && s.bug.blind:
		old.Version = now.Version
	case s.bug.skips && !leaves:
		now.Record, now.Version = next, now.Version+"x"
		return now, nil
	case leaves && s.bug.done && ctx.Err() != nil:
		_, _ = s.plainStore.Swap(context.WithoutCancel(ctx), name, old, next)
		return now, lease.ErrConflict
	}
	if leaves && s.bug.late {
		old.Now = now.Now
	}
	if leaves && s.bug.version != nil && old.Version == s.bug.version(now.Version, now.Record) {
		old.Version = now.Version
	}
	if !leaves && s.bug.written != nil {
		s.bug.written(&next)
	}
	if leaves && s.bug.mute {
		s.plainStore.mu.Lock()
		watches := s.watches[name]
		delete(s.watches, name)
		s.plainStore.mu.Unlock()
		defer func() {
			s.plainStore.mu.Lock()
			defer s.plainStore.mu.Unlock()
			s.watches[name] = append(s.watches[name], watches...)
		}()
	}
	snap, err := s.plainStore.Swap(ctx, name, old, next)
	if leaves && s.bug.swapped != nil {
		s.bug.swapped(&snap, &err)
	}
	if err == nil && s.has(snap) && s.bug.version != nil {
		snap.Version = s.bug.version(snap.Version, snap.Record)
	}
	return snap, err
}

func (s *wrappedStore) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range s.plainStore.List(ctx, prefix) {
			if err == nil && s.has(lease.Snapshot{Record: e.Record, Now: e.Now}) {
				if s.bug.hides {
					continue
				}
				if s.bug.listed != nil {
					s.bug.listed(&e)
				}
				if s.bug.twice && !yield(e, err) {
					return
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *wrappedStore) forget(t testing.TB, of lease.Store) time.Duration {
	if s.bug != nil && s.bug.forgets {
		s.plainStore.mu.Lock()
		now := s.time()
		for name, r := range s.records {
			if s.has(lease.Snapshot{Record: r.Record, Now: now}) {
				delete(s.records, name)
			}
		}
		s.plainStore.mu.Unlock()
	}
	return s.plainStore.forget(t, of)
}

func (s *wrappedStore) reopen(t testing.TB, of lease.Store) lease.Store {
	next := s.plainStore.reopen(t, of).(*plainStore)
	if s.bug != nil && s.bug.reopens != nil {
		now := s.time()
		for name, r := range next.records {
			if !s.has(lease.Snapshot{Record: r.Record, Now: now}) {
				continue
			}
			if s.bug.reopens(&r.Record) {
				next.records[name] = r
			} else {
				delete(next.records, name)
			}
		}
	}
	return &wrappedStore{plainStore: next, state: s.state, bug: s.bug}
}

// wrappedStores is a suite over stores with that bug for the records in that state.
func wrappedStores(state string, bug *storeBug) *suite {
	s := plainStores("")
	s.newStore = func(testing.TB) lease.Store {
		return &wrappedStore{plainStore: newPlainStore(""), state: state, bug: bug}
	}
	s.options.Store.Reopen = func(t testing.TB, of lease.Store) lease.Store { return of.(*wrappedStore).reopen(t, of) }
	s.options.Store.Forget = func(t testing.TB, of lease.Store) time.Duration { return of.(*wrappedStore).forget(t, of) }
	s.options.Store.Corrupt = func(_ testing.TB, of lease.Store, name string) { of.(*wrappedStore).spoilt[name] = true }
	s.options.Store.Another = func(t testing.TB, of lease.Store) lease.Store {
		w, ok := of.(*wrappedStore)
		if !ok { // a store of Options.Store.Connect
			return another(t, of)
		}
		return &wrappedStore{plainStore: w.plainStore, state: w.state, bug: w.bug, seen: map[string]lease.Snapshot{}, late: true}
	}
	return s
}

// matrixStates are the states of the matrix.
var matrixStates = []string{"available", "released", "leased", "infinite", "breaking", "broken", "expired"}

// stateName names the state of a record, as the matrix does.
func stateName(r lease.Record) string {
	switch {
	case r.State == lease.Available && !r.ID.IsZero():
		return "released"
	case r.State == lease.Leased && r.Until.IsZero():
		return "infinite"
	}
	return r.State.String()
}

// storeFaults are what may go wrong with a record in one of the given states. No states stand for all.
var storeFaults = []struct {
	event, what, states string
	bug                 storeBug
}{
	{"operation", "is loaded without its owner", "released leased infinite breaking broken expired", storeBug{loaded: func(s *lease.Snapshot) { s.Record.Owner = "" }}},
	{"operation", "is loaded with a lower epoch", "released leased infinite breaking broken expired", storeBug{loaded: func(s *lease.Snapshot) { s.Record.Epoch-- }}},
	{"operation", "is loaded with another duration", "released leased breaking broken expired", storeBug{loaded: func(s *lease.Snapshot) { s.Record.Duration += time.Second }}},
	{"operation", "is loaded with a later end", "leased breaking", storeBug{loaded: func(s *lease.Snapshot) { s.Record.Until = s.Record.Until.Add(time.Second) }}},
	{"operation", "is loaded with an earlier end", "leased breaking", storeBug{loaded: func(s *lease.Snapshot) { s.Record.Until = s.Record.Until.Add(-time.Second) }}},
	{"operation", "is loaded as free", "leased infinite breaking broken expired", storeBug{loaded: func(s *lease.Snapshot) { s.Record = lease.Record{Epoch: s.Record.Epoch} }}},
	{"operation", "is loaded without an until", "breaking", storeBug{loaded: func(s *lease.Snapshot) { s.Record.State, s.Record.Until = lease.Broken, time.Time{} }}},
	{"operation", "is written with a lower epoch", "released leased infinite breaking broken expired", storeBug{written: func(r *lease.Record) { r.Epoch = max(1, r.Epoch-1) }}},
	{"operation", "is written without its owner", "released leased infinite breaking broken expired", storeBug{written: func(r *lease.Record) { r.Owner = "" }}},
	{"operation", "is acknowledged and not written", "", storeBug{skips: true}},
	{"operation", "is replaced whatever the version", "", storeBug{blind: true}},
	{"operation", "cannot be replaced", "", storeBug{swapped: func(_ *lease.Snapshot, err *error) { *err = lease.ErrConflict }}},
	{"operation", "is replaced, and a conflict", "", storeBug{swapped: func(s *lease.Snapshot, err *error) {
		if *err == nil {
			*s, *err = lease.Snapshot{}, lease.ErrConflict
		}
	}}},
	{"operation", "hides a conflict", "", storeBug{swapped: func(_ *lease.Snapshot, err *error) { *err = nil }}},
	{"operation", "makes a conflict any error", "", storeBug{swapped: func(_ *lease.Snapshot, err *error) {
		if *err != nil {
			*err = errors.New("precondition failed")
		}
	}}},
	{"operation", "has its epoch for a version", "", storeBug{version: func(_ string, r lease.Record) string { return "epoch-" + string(r.Token()) }}},
	{"operation", "is not signalled when it changes", "leased infinite breaking", storeBug{mute: true}},
	{"operation", "is not listed", "leased infinite breaking", storeBug{hides: true}},
	{"operation", "is listed twice", "leased infinite breaking", storeBug{twice: true}},
	{"operation", "is listed without its owner", "leased infinite breaking", storeBug{listed: func(e *lease.Entry) { e.Record.Owner = "" }}},
	{"operation", "is listed with another epoch", "leased infinite breaking", storeBug{listed: func(e *lease.Entry) { e.Record.Epoch++ }}},
	{"operation", "is listed under another name", "leased infinite breaking", storeBug{listed: func(e *lease.Entry) { e.Name = strings.ToUpper(e.Name) }}},
	{"time", "is replaced after its end as before", "broken expired", storeBug{late: true}},
	{"time", "returns an earlier time", "", storeBug{loaded: func(s *lease.Snapshot) { s.Now = s.Now.Add(-time.Minute) }}},
	{"time", "returns the time of the load from a swap", "", storeBug{swapped: func(s *lease.Snapshot, _ *error) { s.Now = s.Now.Add(-time.Minute) }}},
	{"forget", "is forgotten without its epoch", "available released leased infinite breaking broken expired", storeBug{forgets: true}},
	{"reopen", "is lost", "available released leased infinite breaking broken expired", storeBug{reopens: func(*lease.Record) bool { return false }}},
	{"reopen", "loses its epoch", "released leased infinite breaking broken expired", storeBug{reopens: func(r *lease.Record) bool { r.Epoch = 1; return true }}},
	{"reopen", "loses its owner", "released leased infinite breaking broken expired", storeBug{reopens: func(r *lease.Record) bool { r.Owner = ""; return true }}},
	{"reopen", "loses its ID", "released leased infinite breaking broken expired", storeBug{reopens: func(r *lease.Record) bool { *r = lease.Record{Epoch: r.Epoch}; return true }}},
	{"reopen", "restarts its duration", "leased breaking", storeBug{reopens: func(r *lease.Record) bool { r.Until = r.Until.Add(time.Minute); return true }}},
	{"reopen", "is over", "leased breaking", storeBug{reopens: func(r *lease.Record) bool { r.State, r.Until = lease.Broken, time.Time{}; return true }}},
	{"reopen", "becomes finite", "infinite", storeBug{reopens: func(r *lease.Record) bool {
		r.Duration, r.Until = time.Hour, time.Now().UTC().Round(0).Add(time.Hour)
		return true
	}}},
	{"second client", "is shown as it was", "", storeBug{stale: true}},
	{"cancelled context", "is replaced under a done context, and a conflict", "", storeBug{done: true}},
}

// cellBugs are a bug for each state and each fault. They follow from the matrix, and not from the rules.
func cellBugs() (all []cellBug) {
	for _, state := range matrixStates {
		for _, fault := range storeFaults {
			if fault.states != "" && !strings.Contains(" "+fault.states+" ", " "+state+" ") {
				continue
			}
			all = append(all, cellBug{state + " x " + fault.event + "/" + fault.what, func() *suite { return wrappedStores(state, &fault.bug) }})
		}
	}
	return all
}
