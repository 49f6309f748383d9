package leasetest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A plainStore is a simple store: one mutex, one map, one counter. A real store could have each of its bugs.
type plainStore struct {
	bug string

	mu      sync.Mutex
	records map[string]plainRecord
	swaps   int
	floor   uint64
	absent  int           // changes with every forgetting
	now     time.Time     // the latest time that was shown
	set     time.Duration // by which the clock was moved
	watches map[string][]plainWatch
	spoilt  map[string]bool // by name
	opened  time.Time       // again; zero: never
	calls   uint64          // counted by the stores that are sound though unusual
}

type plainRecord struct {
	lease.Record
	version string
	changed time.Time
	ends    time.Time // the first until of the lease
}

type plainWatch struct {
	ctx   context.Context
	ch    chan struct{}
	close func() // closes ch once
	began time.Time
	sent  int
}

func newPlainStore(bug string) *plainStore {
	return &plainStore{bug: bug, records: map[string]plainRecord{}, watches: map[string][]plainWatch{}, spoilt: map[string]bool{}}
}

func (s *plainStore) key(name string) (string, error) {
	if s.bug == "combining marks are dropped" {
		name = strings.NewReplacer("\u00e9", "e", "\u0301", "").Replace(name)
	}
	return name, lease.CheckName(name)
}

func (s *plainStore) time() time.Time {
	now := time.Now().Round(0).UTC().Add(s.set)
	switch s.bug {
	case "its clock has whole seconds":
		now = now.Truncate(time.Second)
	case coarseClock:
		now = now.Truncate(coarseTick)
	}
	switch {
	case now.Before(s.now) && s.bug != "its time is that of its clock":
		return s.now
	case s.bug == "its clock stands still" && !s.now.IsZero():
		return s.now
	case s.bug == "its clock restarts when it is opened" && !s.opened.IsZero():
		return time.Unix(0, 0).UTC().Add(now.Sub(s.opened))
	}
	s.now = now
	return now
}

func (s *plainStore) stepClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set += d
}

func (s *plainStore) current(name string) lease.Snapshot {
	snap := lease.Snapshot{Record: lease.Record{Epoch: s.floor}, Version: fmt.Sprint("absent-", s.absent), Now: s.time()}
	switch s.bug {
	case coarseClock:
		snap.Uncertainty = coarseTick
	case oneCounter:
		snap.Version = fmt.Sprint("absent-", s.swaps)
	}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := s.read(name)
	if err != nil {
		return snap, err
	}
	if s.bug == risingEpochs && snap.Record.ID.IsZero() {
		s.calls++
		snap.Record.Epoch = max(snap.Record.Epoch, s.calls)
	}
	return snap, ctx.Err()
}

// read returns the snapshot of a name, unless its record is corrupt. The mutex is held.
func (s *plainStore) read(name string) (lease.Snapshot, error) {
	if s.spoilt[name] {
		if s.bug != "takes what it cannot read for free" {
			return lease.Snapshot{}, fmt.Errorf("%w: the record of %q", lease.ErrCorrupt, name)
		}
		delete(s.records, name)
	}
	return s.current(name), nil
}

func (s *plainStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	name, err := s.key(name)
	if err != nil {
		return lease.Snapshot{}, err
	}
	if err := next.Validate(); err != nil && s.bug != "writes what is corrupt" {
		return lease.Snapshot{}, err
	}
	if ctx.Err() != nil && s.bug == "acknowledges what it does not write under a done context" {
		return lease.Snapshot{Record: next, Version: "none", Now: time.Now().UTC()}, nil
	}
	if s.bug == oneCounter {
		time.Sleep(time.Nanosecond) // other calls come between a load and its swap
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current(name)
	conflict := now.Version != old.Version
	over := now.Record.At(old.Now) != now.Record.At(now.Now)
	switch s.bug {
	case "compares nothing":
		conflict = false
	case "writes whatever is there for an empty version":
		conflict = conflict && old.Version != ""
	case "compares records":
		conflict = now.Record != old.Record
	case "does not look at the time", "reads the time of a swap in a message of its own":
		over = false
	case "compares the until with the clock of its process":
		over = now.Record.At(old.Now) != now.Record.At(time.Now())
	case "conflicts whenever time has passed":
		over = !now.Now.Equal(old.Now)
	case "shows the time of the load when a state is over":
		if over && !conflict {
			now.Now = old.Now
		}
	case needlessConflicts:
		if s.calls++; s.calls%3 == 0 {
			return lease.Snapshot{}, lease.ErrConflict
		}
	}
	if conflict || over {
		return now, lease.ErrConflict
	}
	_, known := s.records[name]
	if next.Epoch < now.Record.Epoch && (known || s.bug != "compares no epoch with the floor") {
		return lease.Snapshot{}, next.ValidateAfter(now.Record)
	}
	if known && next.Epoch < s.floor && s.bug == "holds names that it knows to the floor" {
		return lease.Snapshot{}, fmt.Errorf("the epoch %d is too low", next.Epoch)
	}
	s.put(name, next, now.Now)
	return s.current(name), ctx.Err()
}

func (s *plainStore) put(name string, next lease.Record, now time.Time) {
	s.swaps++
	version := fmt.Sprint("swap-", s.swaps)
	switch s.bug {
	case "counts versions in a byte":
		version = fmt.Sprint("swap-", s.swaps%256)
	case "keeps epochs in 32 bits":
		next.Epoch = uint64(uint32(next.Epoch))
	}
	was := s.records[name]
	ends := next.Until
	if was.ID == next.ID && was.Epoch == next.Epoch && !was.ends.IsZero() {
		ends = was.ends
	}
	s.records[name] = plainRecord{next, version, now, ends}
	for i, w := range s.watches[name] {
		if s.bug == "signals no watch after one that is unread" && len(w.ch) > 0 {
			break
		}
		s.watches[name][i].sent++
		switch {
		case s.bug == "a watch goes deaf after 32 signals" && w.sent >= 32:
			continue
		case w.ctx.Err() != nil,
			s.bug == "signals no other owner" && next.ID == was.ID && next.State == was.State && next.Owner != was.Owner,
			s.bug == "signals nothing once a record is corrupt" && len(s.spoilt) > 0,
			s.bug == "signals nothing after it was opened again" && !s.opened.IsZero():
			continue
		case s.bug == "a later change takes the signal back":
			select {
			case <-w.ch:
				continue
			default:
			}
		}
		select {
		case w.ch <- struct{}{}:
		default:
		}
		if s.bug == briefWatches {
			w.close()
		}
	}
	if s.bug == briefWatches {
		delete(s.watches, name)
	}
}

func (s *plainStore) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil && s.bug != "watches hostile names" {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := plainWatch{ctx: ctx, ch: make(chan struct{}, 1), began: time.Now()}
	w.close = sync.OnceFunc(func() { close(w.ch) })
	s.watches[name] = append(s.watches[name], w)
	if s.bug != "never closes a watch" {
		context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.bug == "a watch of what it cannot read never ends" && s.spoilt[name] {
				return
			}
			if s.bug == "the end of a watch ends all of its name" {
				delete(s.watches, name)
			}
			s.watches[name] = slices.DeleteFunc(s.watches[name], func(o plainWatch) bool { return o.ch == w.ch })
			w.close()
		})
	}
	return w.ch, nil
}

func (s *plainStore) loseWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watches := range s.watches {
		for _, w := range watches {
			if s.bug != "closes no watch that is lost" {
				w.close()
			}
		}
	}
	clear(s.watches)
}

// plainStores is a suite over stores with that bug.
func plainStores(bug string) *suite {
	o := &Options{
		Bubble: true,
		Seed:   1,
		Store: StoreHooks{
			Reopen:  func(t testing.TB, s lease.Store) lease.Store { return s.(*plainStore).reopen(t, s) },
			Corrupt: func(_ testing.TB, s lease.Store, name string) { s.(*plainStore).spoilt[name] = true },
			Another: another,
			Connect: connectStore(bug),
			StepClock: func(_ testing.TB, s lease.Store, d time.Duration) {
				s.(interface{ stepClock(time.Duration) }).stepClock(d)
			},
			Forget:      func(t testing.TB, s lease.Store) time.Duration { return s.(*plainStore).forget(t, s) },
			LoseWatches: func(_ testing.TB, s lease.Store) { s.(interface{ loseWatches() }).loseWatches() },
		},
	}
	return &suite{rules: storeRules, options: o.withDefaults(), newStore: func(testing.TB) lease.Store {
		switch s := newPlainStore(bug); bug {
		case "keeps the version when its authority writes", "has an authority that goes by the clock of its process":
			return withAuthority{s}
		default:
			return s
		}
	}}
}

// withAuthority is a plainStore that has an authority of its own.
type withAuthority struct{ *plainStore }

func (s withAuthority) Authority() lease.Authority { return &plainAuthority{plainStore: s.plainStore} }

func TestPlainStore(t *testing.T) { plainStores("").test(t) }

// A plainClient is a second client of a plainStore, with the bugs that show only where there are two.
type plainClient struct {
	*plainStore

	own     sync.Mutex
	cache   map[string]lease.Snapshot
	signals []chan struct{}
}

func (c *plainClient) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	c.own.Lock()
	cached, ok := c.cache[name]
	c.own.Unlock()
	if ok && ctx.Err() != nil && c.bug == "shows what it saw when the context is done" {
		return cached, nil
	}
	snap, err := c.plainStore.Load(ctx, name)
	if c.bug == "tells the time of its process" {
		snap.Now = snap.Now.Add(-time.Minute)
	}
	c.own.Lock()
	defer c.own.Unlock()
	c.cache[name] = snap
	return snap, err
}

func (c *plainClient) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if c.bug == "locks within its process only" {
		if now, _ := c.plainStore.Load(ctx, name); now.Version != old.Version {
			return now, lease.ErrConflict
		}
		time.Sleep(time.Nanosecond) // the other client comes between
		old, _ = c.plainStore.Load(ctx, name)
	}
	c.own.Lock()
	defer c.own.Unlock()
	snap, err := c.plainStore.Swap(ctx, name, old, next)
	delete(c.cache, name)
	for _, s := range c.signals {
		select {
		case s <- struct{}{}:
		default:
		}
	}
	return snap, err
}

func (c *plainClient) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if c.bug != "signals its own swaps only" {
		return c.plainStore.Watch(ctx, name)
	}
	c.own.Lock()
	defer c.own.Unlock()
	s := make(chan struct{}, 1)
	c.signals = append(c.signals, s)
	return s, nil
}

// another is a second client of a plainStore.
func another(_ testing.TB, s lease.Store) lease.Store {
	if remote, ok := s.(*remoteStore); ok {
		s = remote.plainStore
	}
	return &plainClient{plainStore: s.(*plainStore), cache: map[string]lease.Snapshot{}}
}

const plainRetention = time.Hour

// forget removes all records that the store may forget.
func (s *plainStore) forget(testing.TB, lease.Store) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.time()
	if s.bug == "forgets locks after it was opened again" && !s.opened.IsZero() {
		clear(s.records)
	}
	gone := uint64(0) // the highest epoch that is forgotten now
	maps.DeleteFunc(s.records, func(name string, r plainRecord) bool {
		ended := r.changed
		if !r.Until.IsZero() && s.bug != "forgets what ended just now and was written long ago" {
			ended = r.Until
		}
		idle := r.State == lease.Available || !r.At(now).State.Locked() && now.Sub(ended) > 2*plainRetention
		switch s.bug {
		case "forgets a lease by its first end":
			idle = idle || !r.ends.IsZero() && now.Sub(r.ends) > 2*plainRetention
		case "forgets what expired and was written":
			idle = idle || r.State == lease.Expired
		case "forgets what never ends after the stated time":
			idle = idle || r.State == lease.Leased && r.Until.IsZero() && now.Sub(r.changed) > 2*plainRetention
		case "forgets the watches too":
			delete(s.watches, name)
		}
		if idle {
			gone, s.floor = max(gone, r.Epoch), max(s.floor, r.Epoch)
		}
		return idle
	})
	if s.bug == "the floor is what was forgotten last" && gone > 0 {
		s.floor = gone
	}
	if s.bug != "absence has one version" {
		s.absent++
	}
	return plainRetention
}

// reopen returns the store that a process finds after a restart.
func (s *plainStore) reopen(testing.TB, lease.Store) lease.Store {
	next := newPlainStore(s.bug)
	next.records, next.swaps, next.now = s.records, s.swaps, s.now
	next.floor, next.absent, next.opened, next.set = s.floor, s.absent+1, time.Now(), s.set
	switch s.bug {
	case "versions restart after reopening":
		next.swaps = 0
	case "forgets its time when it is closed":
		next.now = time.Time{}
	case "the floor of epochs is in memory only":
		next.floor = 0
	case "the version of an absence recurs after reopening":
		next.absent = 0
	}
	return next
}

func (s *plainStore) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if prefix != "" && s.bug != "takes any prefix" {
			if err := lease.CheckName(prefix); err != nil {
				yield(lease.Entry{}, err)
				return
			}
		}
		names := s.names(prefix)
		s.mu.Lock()
		began := s.current("").Now
		s.mu.Unlock()
		if s.bug == "lists no more than a page of 1000" {
			names = names[:min(1000, len(names))]
		}
		for shown := 0; ; shown++ {
			if err := ctx.Err(); err != nil && s.bug != "ends a list without an error" {
				yield(lease.Entry{}, err)
				return
			}
			if shown >= len(names) || ctx.Err() != nil {
				return
			}
			e, err := s.entry(names[shown])
			if s.bug == "lists no more than it can read" && err != nil {
				continue
			}
			if s.bug == "lists every record with the time of the beginning" {
				e.Now = began
			}
			if !yield(e, err) && s.bug != "goes on when the loop has ended" {
				return
			}
		}
	}
}

// names returns the names that a list contains.
func (s *plainStore) names(prefix string) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[name]
		begins := strings.HasPrefix(name, prefix)
		switch {
		case s.bug == "drops the slash at the end of a prefix":
			begins = strings.HasPrefix(name, strings.TrimSuffix(prefix, "/"))
		case s.bug == "lists what is leased only", s.bug == "lists what is leased only after it was opened again" && !s.opened.IsZero():
			begins = begins && r.State == lease.Leased
		}
		if begins && r.State != lease.Available {
			names = append(names, name)
		}
	}
	return names
}

func (s *plainStore) entry(name string) (lease.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spoilt[name] {
		return lease.Entry{Name: name}, fmt.Errorf("%w: the record of %q", lease.ErrCorrupt, name)
	}
	snap := s.current(name)
	if s.bug == "lists what is locked with the time of its commit" && snap.Record.At(snap.Now).State.Locked() {
		snap.Now = s.records[name].changed
	}
	if s.bug == "lists by the clock of its process" {
		return lease.Entry{Name: name, Record: snap.Record.At(time.Now()), Now: snap.Now}, nil
	}
	if s.bug == "lists records as they were written" {
		return lease.Entry{Name: name, Record: snap.Record, Now: snap.Now}, nil
	}
	return lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}, nil
}
