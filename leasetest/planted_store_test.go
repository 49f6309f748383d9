package leasetest

import (
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/fencedlease/lease"
)

// A plainStore is a store in its simplest form: one mutex, one map, one counter. Each bug of a
// plainStore is a bug that a real store could have.
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
	now := time.Now().Round(0).UTC().Add(s.set)
	switch {
	case now.Before(s.now) && s.bug != "its time is that of its clock":
		return s.now
	case s.bug == "its clock stands still" && !s.now.IsZero():
		return s.now
	case s.bug == "its clock restarts when it is opened" && !s.opened.IsZero():
		return time.Unix(0, 0).UTC().Add(now.Sub(s.opened))
	case s.bug == "its clock goes back" && s.swaps%2 == 1:
		return now.Add(-time.Minute)
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
	if r, ok := s.records[name]; ok && s.bug == "a record has a time to live" && !r.At(snap.Now).State.Locked() && snap.Now.Sub(r.changed) > 24*time.Hour {
		delete(s.records, name)
	} else if ok {
		snap.Record, snap.Version = r.Record, r.version
		if s.bug == "shows the floor for names that it knows" {
			snap.Record.Epoch = max(snap.Record.Epoch, s.floor)
		}
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
	if s.bug == "takes no record" {
		return lease.Snapshot{}, fmt.Errorf("no connection")
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
	case "compares nothing with absence":
		_, known := s.records[name]
		conflict = conflict && known
	case "writes whatever is there for an empty version":
		conflict = conflict && old.Version != ""
	case "compares the length of versions":
		conflict = len(now.Version) != len(old.Version)
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
	_, known := s.records[name]
	if next.Epoch < now.Record.Epoch && s.bug != "lets an epoch fall" && (known || s.bug != "compares no epoch with the floor") {
		return lease.Snapshot{}, next.ValidateAfter(now.Record)
	}
	if known && next.Epoch < s.floor && s.bug == "holds names that it knows to the floor" {
		return lease.Snapshot{}, fmt.Errorf("the epoch %d is too low", next.Epoch)
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
	case "versions restart with a name":
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
		ends := next.Until
		if was.ID == next.ID && was.Epoch == next.Epoch && !was.ends.IsZero() {
			ends = was.ends
		}
		s.records[name] = plainRecord{next, version, now, ends}
	}
	hadNoEnd := was.State == lease.Leased && was.Until.IsZero()
	for i, w := range s.watches[name] {
		if s.bug == "signals no watch after one that is unread" && len(w.ch) > 0 {
			break
		}
		s.watches[name][i].sent++
		switch {
		case s.bug == "a watch goes deaf after 32 signals" && w.sent >= 32, s.bug == "a watch goes deaf after a day" && now.Sub(w.began) > 24*time.Hour:
			continue
		case w.ctx.Err() != nil, s.bug == "signals no more than one watch" && i > 0, s.bug == "signals every other change" && s.swaps%2 == 0,
			s.bug == "signals grants only" && next.State != lease.Leased, s.bug == "signals no release" && next.State == lease.Available,
			s.bug == "signals no break" && next.State == lease.Breaking, s.bug == "signals new states only" && next.State == was.State,
			s.bug == "signals no other owner" && next.ID == was.ID && next.State == was.State && next.Owner != was.Owner,
			s.bug == "signals no other ID" && next.ID != was.ID && next.State == was.State,
			s.bug == "signals no break of an infinite lease" && hadNoEnd && next.State == lease.Breaking,
			s.bug == "signals no break that keeps the end" && next.State == lease.Breaking && next.Until.Equal(was.Until),
			s.bug == "signals nothing once a record is corrupt" && len(s.spoilt) > 0,
			s.bug == "signals no end of what had none" && next.ID == was.ID && hadNoEnd && !next.Until.IsZero(),
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
			w.close()
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
	if err := lease.CheckName(name); err != nil && s.bug != "watches hostile names" {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := plainWatch{ctx: ctx, ch: make(chan struct{}, 1), began: time.Now()}
	w.close = sync.OnceFunc(func() { close(w.ch) })
	if ctx.Err() != nil && s.bug == "watches forever under a done context" {
		return w.ch, nil
	}
	if s.bug == "drops signals without a waiter" {
		w.ch = make(chan struct{})
	}
	s.watches[name] = append(s.watches[name], w)
	if s.bug != "never closes a watch" && s.bug != "closes a watch instead of a signal" {
		context.AfterFunc(ctx, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.bug == "the end of a watch ends all of its name" || s.bug == "the end of the last watch but one ends both" && len(s.watches[name]) == 2 {
				delete(s.watches, name)
			}
			s.watches[name] = slices.DeleteFunc(s.watches[name], func(o plainWatch) bool { return o.ch == w.ch })
			w.close()
		})
	}
	return w.ch, nil
}

// loseWatches ends all watches.
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
		return newPlainStore(bug)
	}}
}

func TestPlainStore(t *testing.T) { plainStores("").test(t) }

// A plainClient is a second client of a plainStore, with the bugs that show only where there are
// two.
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
	if ok && c.bug == "caches what it did not swap itself" {
		cached.Now = time.Now().Round(0).UTC()
		return cached, ctx.Err()
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
	if c.bug == "writes back what it read of all names" {
		c.mu.Lock()
		all := maps.Clone(c.records)
		c.mu.Unlock()
		time.Sleep(time.Nanosecond) // the other client comes between
		delete(all, name)
		c.mu.Lock()
		maps.Copy(c.records, all)
		c.mu.Unlock()
	}
	c.own.Lock()
	defer c.own.Unlock()
	if c.bug == "compares with what it remembers" && c.cache[name].Version == old.Version {
		old, _ = c.plainStore.Load(ctx, name)
	}
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
	s.gone = 0
	maps.DeleteFunc(s.records, func(name string, r plainRecord) bool {
		ended := r.changed
		if !r.Until.IsZero() && s.bug != "forgets what ended just now and was written long ago" {
			ended = r.Until
		}
		idle := r.State == lease.Available || !r.At(now).State.Locked() && now.Sub(ended) > 2*plainRetention
		switch s.bug {
		case "forgets what is locked":
			idle = true
		case "forgets a lease by its first end":
			idle = idle || !r.ends.IsZero() && now.Sub(r.ends) > 2*plainRetention
		case "forgets what just expired":
			idle = !r.At(now).State.Locked()
		case "forgets what is broken":
			idle = idle || r.At(now).State == lease.Broken
		case "forgets what expired and was written":
			idle = idle || r.State == lease.Expired
		case "forgets what never ends":
			idle = idle || r.State == lease.Leased && r.Until.IsZero()
		case "forgets what was written long ago":
			idle = idle || r.State == lease.Leased && !r.Until.IsZero() && now.Sub(r.changed) > 2*plainRetention
		case "forgets what has been breaking for long":
			idle = idle || r.State == lease.Breaking && now.Sub(r.changed) > 2*plainRetention
		case "forgets what never ends after the stated time":
			idle = idle || r.State == lease.Leased && r.Until.IsZero() && now.Sub(r.changed) > 2*plainRetention
		case "forgets the watches too":
			delete(s.watches, name)
		}
		if idle {
			s.gone = max(s.gone, r.Epoch)
		}
		if idle && s.bug != "forgets the epoch too" {
			s.floor = max(s.floor, r.Epoch)
		}
		return idle
	})
	switch s.bug {
	case "absence has one version":
	case "absence has its epoch for a version":
		s.absent = int(s.floor)
	default:
		s.absent++
	}
	if s.bug == "versions restart after forgetting" {
		s.swaps = 0
	}
	return plainRetention
}

// reopen returns the store that a process finds after a restart.
func (s *plainStore) reopen(testing.TB, lease.Store) lease.Store {
	next := newPlainStore(s.bug)
	if s.bug != "loses what it acknowledged" {
		next.records = s.records
	}
	switch s.bug {
	case "versions restart after reopening":
	case "counts versions from those that it finds":
		for _, r := range s.records {
			var n int
			_, _ = fmt.Sscanf(r.version, "swap-%d", &n)
			next.swaps = max(next.swaps, n)
		}
	default:
		next.swaps = s.swaps
	}
	next.floor, next.absent, next.opened, next.set = s.floor, s.absent+1, time.Now(), s.set
	if s.bug != "forgets its time when it is closed" {
		next.now = s.now
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
		if s.bug == "lists a cache" && s.listed != nil {
			names = slices.DeleteFunc(slices.Clone(s.listed), func(name string) bool { return !strings.HasPrefix(name, prefix) })
		}
		s.listed = names
		if s.bug == "reads a list at its beginning and shows it as of later" {
			s.mu.Lock()
			read := maps.Clone(s.records)
			s.mu.Unlock()
			for _, name := range names {
				e, err := s.entry(name)
				if err == nil {
					e.Record = read[name].At(e.Now)
				}
				if !yield(e, err) {
					return
				}
			}
			return
		}
		if s.bug == "lists no more than a page of 1000" {
			names = names[:min(1000, len(names))]
		}
		const page = 10
		for shown := 0; ; shown++ {
			if s.bug == "pages by offset" && shown%page == 0 {
				names = s.names(prefix)
			}
			if err := ctx.Err(); err != nil && s.bug != "ends a list without an error" {
				yield(lease.Entry{}, err)
				return
			}
			if shown >= len(names) || ctx.Err() != nil {
				return
			}
			if s.bug == "ends a list at what it cannot read" && s.spoilt[names[shown]] {
				yield(lease.Entry{}, lease.ErrCorrupt)
				return
			}
			e, err := s.entry(names[shown])
			if s.bug == "lists no more than it can read" && err != nil {
				continue
			}
			if s.bug == "lists every record with the time of the beginning" {
				e.Now = began
			}
			if s.bug == "lists what is infinite twice" && e.Record.Duration == lease.Infinite && !yield(e, err) {
				return
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
		switch s.bug {
		case "takes a prefix for a pattern":
			flat := strings.NewReplacer("/", "|") // a pattern's star matches no slash
			begins, _ = path.Match(flat.Replace(prefix)+"*", flat.Replace(name))
		case "takes prefixes in any case":
			begins = strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
		case "lists what contains the prefix":
			begins = strings.Contains(name, prefix)
		case "drops the slash at the end of a prefix":
			begins = strings.HasPrefix(name, strings.TrimSuffix(prefix, "/"))
		case "lists no name with a part that begins with a dot":
			begins = begins && !strings.Contains(name, "/.")
		case "lists what is leased only":
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
	if s.bug == "lists records as they were written" {
		return lease.Entry{Name: name, Record: snap.Record, Now: snap.Now}, nil
	}
	return lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}, nil
}
