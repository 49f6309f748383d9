package leasetest

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/fencedlease/lease"
)

// A plainStore is a store in its simplest form: one mutex, one map, one counter. Each of the
// bugs that it may have is one that somebody's store could have.
type plainStore struct {
	bug string

	mu      sync.Mutex
	records map[string]plainRecord
	swaps   int
	floor   uint64
	absent  int // changes with every forgetting
	now     time.Time
	watches map[string][]plainWatch
	first   map[string]lease.Snapshot // the first answer to a Load
	spoilt  map[string]bool           // by name
	opened  time.Time                 // again; zero: never
	listed  []string                  // the names of the list before
	form    func(name string) string  // in which names are kept; nil: as they are
	gone    uint64                    // the highest epoch that the last forgetting forgot
}

type plainRecord struct {
	lease.Record
	version string
	changed time.Time
}

type plainWatch struct {
	ctx   context.Context
	ch    chan struct{}
	began time.Time
	sent  int
}

func newPlainStore(bug string) *plainStore {
	return &plainStore{bug: bug, records: map[string]plainRecord{}, watches: map[string][]plainWatch{}, first: map[string]lease.Snapshot{}, spoilt: map[string]bool{}}
}

func (s *plainStore) key(name string) (string, error) {
	if s.form != nil && lease.CheckName(name) == nil {
		return s.form(name), nil
	}
	switch s.bug {
	case "takes hostile names":
		return name, nil
	case "keeps one record for all":
		return "record", nil
	case "folds case":
		name = strings.ToLower(name)
	case "shortens names":
		name = name[:min(63, len(name))]
	case "keeps names as hashes of 32 bits":
		return fmt.Sprint(crc32.ChecksumIEEE([]byte(name))), lease.CheckName(name)
	case "replaces separators":
		name = strings.NewReplacer("/", "_", ".", "_").Replace(name)
	}
	return name, lease.CheckName(name)
}

func (s *plainStore) time() time.Time {
	now := time.Now().Round(0).UTC()
	switch {
	case s.bug == "its clock stands still" && !s.now.IsZero():
		return s.now
	case s.bug == "its clock begins anew when it is opened" && !s.opened.IsZero():
		return time.Unix(0, 0).UTC().Add(now.Sub(s.opened))
	case s.bug == "its clock goes back" && s.swaps%2 == 1:
		return now.Add(-time.Minute)
	}
	s.now = now
	return now
}

func (s *plainStore) current(name string) lease.Snapshot {
	snap := lease.Snapshot{Record: lease.Record{Epoch: s.floor}, Version: fmt.Sprint("absent-", s.absent), Now: s.time()}
	if r, ok := s.records[name]; ok && s.bug == "a record has a time to live" && !r.At(snap.Now).State.Locked() && snap.Now.Sub(r.changed) > 24*time.Hour {
		delete(s.records, name)
	} else if ok {
		snap.Record, snap.Version = r.Record, r.version
	} else if s.bug == "knows every name" {
		snap.Record = lease.Record{State: lease.Expired, ID: lease.ID{1}, Duration: 1, Epoch: s.floor + 1}
	}
	return snap
}

func (s *plainStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	name, err := s.key(name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	if ctx.Err() != nil && s.bug == "takes a done context for a free lease" {
		return lease.Snapshot{Version: "none", Now: time.Now().UTC()}, nil
	}
	began := time.Now().Round(0).UTC()
	if s.bug == "reads the clock before the record" {
		time.Sleep(2 * time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoilt[name] {
		if s.bug == "takes what it cannot read for free" {
			delete(s.records, name)
		} else {
			return lease.Snapshot{}, fmt.Errorf("%w: the record of %q", lease.ErrCorrupt, name)
		}
	}
	snap := s.current(name)
	if first, ok := s.first[name]; ok && s.bug == "answers from a cache" && s.swaps%3 != 0 {
		return first, nil
	}
	if s.first[name] = snap; s.bug == "reads the clock before the record" {
		snap.Now = began
	}
	return snap, ctx.Err()
}

func (s *plainStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	name, err := s.key(name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	if err := next.Validate(); err != nil && s.bug != "writes what is corrupt" {
		return lease.Snapshot{}, err
	}
	if s.bug == "compares before it writes" {
		s.mu.Lock()
		now := s.current(name)
		s.mu.Unlock()
		time.Sleep(time.Nanosecond) // another comes between
		if now.Version != old.Version {
			return now, lease.ErrConflict
		}
	}
	if ctx.Err() != nil && s.bug == "acknowledges what it does not write under a done context" {
		return lease.Snapshot{Record: next, Version: "none", Now: time.Now().UTC()}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current(name)
	conflict := now.Version != old.Version
	over := now.Record.At(old.Now) != now.Record.At(now.Now)
	switch s.bug {
	case "compares nothing", "compares before it writes":
		conflict = false
	case "compares records":
		conflict = now.Record != old.Record
	case "does not look at the time":
		over = false
	case "conflicts whenever time has passed":
		over = !now.Now.Equal(old.Now)
	case "conflicts forever once a state is over":
		over = over || !now.Record.Until.IsZero() && !now.Now.Before(now.Record.Until)
	case "applies what conflicts":
		if conflict {
			s.put(name, next, now.Now)
			return lease.Snapshot{}, lease.ErrConflict
		}
	case "takes nothing for a conflict":
		if conflict {
			return now, nil
		}
	case "shows the wrong record with a conflict":
		if conflict {
			now.Record = next
		}
	case "shows the time of the load with a conflict":
		if conflict || over {
			now.Now = old.Now
		}
	case "shows the time of the load when a state is over":
		if over && !conflict {
			now.Now = old.Now
		}
	case "reports a conflict as any error":
		if conflict {
			return now, fmt.Errorf("precondition failed")
		}
	}
	if conflict || over {
		return now, lease.ErrConflict
	}
	s.put(name, next, now.Now)
	if s.bug == "returns what it replaced" {
		return now, nil
	}
	if ctx.Err() != nil && s.bug == "takes an ended context for a conflict" {
		return lease.Snapshot{}, lease.ErrConflict
	}
	return s.current(name), ctx.Err()
}

func (s *plainStore) put(name string, next lease.Record, now time.Time) {
	s.swaps++
	version := fmt.Sprint("swap-", s.swaps)
	switch s.bug {
	case "versions are hashes":
		version = fmt.Sprint(next)
	case "versions begin anew with a name":
		version = fmt.Sprint("swap-", next.Epoch-s.floor)
		if next.Epoch == s.floor {
			version += "-released"
		}
	case "counts versions in a byte":
		version = fmt.Sprint("swap-", s.swaps%256)
	case "drops control characters":
		next.Owner = strings.Map(func(r rune) rune {
			if r != '\n' && r != '\t' && unicode.IsControl(r) {
				return -1
			}
			return r
		}, next.Owner)
	case "forgets the owner":
		next.Owner = ""
	case "rounds durations":
		next.Duration = next.Duration.Round(time.Second)
	case "keeps milliseconds":
		next.Until = next.Until.Truncate(time.Millisecond)
	case "keeps epochs in 32 bits":
		next.Epoch = uint64(uint32(next.Epoch))
	}
	was := s.records[name]
	if next.State == lease.Available && s.bug == "deletes what is released" {
		delete(s.records, name)
	} else {
		s.records[name] = plainRecord{next, version, now}
	}
	for i, w := range s.watches[name] {
		s.watches[name][i].sent++
		switch {
		case s.bug == "a watch goes deaf after 32 signals" && w.sent >= 32, s.bug == "a watch goes deaf after a day" && now.Sub(w.began) > 24*time.Hour:
			continue
		case w.ctx.Err() != nil, s.bug == "signals no more than one watch" && i > 0, s.bug == "signals every other change" && s.swaps%2 == 0,
			s.bug == "signals grants only" && next.State != lease.Leased, s.bug == "signals no release" && next.State == lease.Available,
			s.bug == "signals no break" && next.State == lease.Breaking, s.bug == "signals new states only" && next.State == was.State,
			s.bug == "signals no other owner" && next.ID == was.ID && next.State == was.State && next.Owner != was.Owner,
			s.bug == "signals no other ID" && next.ID != was.ID && next.State == was.State,
			s.bug == "signals no earlier end" && next.ID == was.ID && next.State == was.State && next.Owner == was.Owner:
			continue
		case s.bug == "a later change takes the signal back":
			select {
			case <-w.ch:
				continue
			default:
			}
		}
		if s.bug == "closes a watch instead of a signal" {
			close(w.ch)
			continue
		}
		select {
		case w.ch <- struct{}{}:
		default:
		}
	}
	if s.bug == "closes a watch instead of a signal" {
		delete(s.watches, name)
	}
}

func (s *plainStore) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := plainWatch{ctx: ctx, ch: make(chan struct{}, 1), began: time.Now()}
	if ctx.Err() != nil && s.bug == "watches forever under a done context" {
		return w.ch, nil
	}
	if s.bug == "drops signals that nobody waits for" {
		w.ch = make(chan struct{})
	}
	s.watches[name] = append(s.watches[name], w)
	if s.bug != "never closes a watch" && s.bug != "closes a watch instead of a signal" {
		context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.bug == "the end of a watch ends all of its name" {
				delete(s.watches, name)
			}
			s.watches[name] = slices.DeleteFunc(s.watches[name], func(o plainWatch) bool { return o.ch == w.ch })
			close(w.ch)
		})
	}
	return w.ch, nil
}

// plainStores is a suite over stores with that bug.
func plainStores(bug string) *suite {
	o := &Options{Bubble: true, Seed: 1,
		Reopen:  func(t testing.TB, s lease.Store) lease.Store { return s.(*plainStore).reopen(t, s) },
		Corrupt: func(_ testing.TB, s lease.Store, name string) { s.(*plainStore).spoilt[name] = true },
		Another: another,
		Forget:  func(t testing.TB, s lease.Store) time.Duration { return s.(*plainStore).forget(t, s) },
	}
	return &suite{rules: storeRules, options: o.withDefaults(), newStore: func(testing.TB) lease.Store {
		return newPlainStore(bug)
	}}
}

func TestPlainStore(t *testing.T) { plainStores("").test(t) }
