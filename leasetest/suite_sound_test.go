package leasetest_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/memory"
)

// Stores that are unlike others and yet sound are accepted, and so are the authorities over them and, if
// they are slow, wrong about the time or without a watch, the leases over those.
func TestSoundThoughUnusual(t *testing.T) {
	const late = 100 * time.Millisecond
	for what, c := range map[string]struct {
		store  func() lease.Store
		slack  time.Duration
		leases bool
	}{
		"conflicts without need": {func() lease.Store { return &maxSpurious{Store: memory.New(nil)} }, 0, true},
		"50 ms an exchange": {func() lease.Store {
			return leasefault.ScriptStore(memory.New(nil), leasefault.Always(leasefault.LoadOrSwap,
				leasefault.Chain(leasefault.DelayRequest(late/4), leasefault.DelayAnswer(late/4))))
		}, late, true},
		"opaque versions, a local zone, wrapped errors, bare conflicts": {func() lease.Store {
			m := memory.New(nil)
			return listed{&opaque{Store: m}, m, m}
		}, 0, false},
		"a watch is lost after each signal": {func() lease.Store {
			m := memory.New(nil)
			return listed{m, brief{m}, m}
		}, 0, true},
		"the epochs of unknown names rise by themselves": {func() lease.Store {
			m := memory.New(nil)
			return listed{&rising{Store: m}, m, m}
		}, 0, false},
		"the names share one counter of versions": {func() lease.Store {
			return counted{NewShelf(nil).(*Shelf)}
		}, late, false},
		"a clock of 500 ms, which is its uncertainty": {func() lease.Store {
			m := memory.New(&memory.Options{Clock: coarse{leasefault.NewClock(), time.Second / 2}})
			return listed{lagging{m, time.Second / 2}, m, m}
		}, time.Second / 2, true},
	} {
		t.Run(what, func(t *testing.T) {
			leasetest.TestStore(t, func(testing.TB) lease.Store { return c.store() },
				&leasetest.Options{Bubble: true, Slack: c.slack})
			authority := func(testing.TB) lease.Authority { return lease.NewAuthority(c.store()) }
			leasetest.TestAuthority(t, authority, &leasetest.Options{Bubble: true, Slack: c.slack})
			if !c.leases {
				return // a lease sees no versions, errors of the store or epochs of unknown names
			}
			o := &leasetest.Options{Bubble: true, Slack: c.slack, Lease: leasetest.LeaseHooks{Authority: authority}}
			leasetest.TestLease(t, newSession, o)
		})
	}
}

// A listed store takes its watches and lists from elsewhere.
type listed struct {
	lease.Store
	lease.Watcher
	lease.Lister
}

// A maxSpurious store answers every third swap with a conflict, even if the version is current.
type maxSpurious struct {
	*memory.Store
	swaps atomic.Uint64
}

func (s *maxSpurious) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if s.swaps.Add(1)%3 == 0 {
		return lease.Snapshot{}, lease.ErrConflict
	}
	return s.Store.Swap(ctx, name, old, next)
}

// An opaque store has versions that are no text, returns times in a zone of its own, wraps its errors, and
// shows nothing with a conflict.
type opaque struct {
	lease.Store
	versions sync.Map // the inner version for each outer version, and the reverse
}

func (s *opaque) show(snap lease.Snapshot, err error) (lease.Snapshot, error) {
	if err != nil {
		return lease.Snapshot{}, fmt.Errorf("rpc: %w", errors.Join(errors.New("status 412"), err))
	}
	shown := "\x00\xff" + string(binary.LittleEndian.AppendUint64(nil, rand.Uint64()))
	if known, ok := s.versions.LoadOrStore("in "+snap.Version, shown); ok {
		shown = known.(string)
	}
	s.versions.Store(shown, snap.Version)
	snap.Version, snap.Now = shown, snap.Now.In(time.FixedZone("east", 5*3600+1800))
	return snap, nil
}

func (s *opaque) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return s.show(s.Store.Load(ctx, name))
}

func (s *opaque) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	version, _ := s.versions.Load(old.Version)
	old.Version, _ = version.(string)
	return s.show(s.Store.Swap(ctx, name, old, next))
}

// A rising store counts its loads, and takes that count for the epoch of a name that it does not know, as a
// real store may take its clock.
type rising struct {
	lease.Store
	loads atomic.Uint64
}

func (s *rising) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	if n := s.loads.Add(1); snap.Record.ID.IsZero() {
		snap.Record.Epoch = max(snap.Record.Epoch, n)
	}
	return snap, err
}

// A brief watcher loses every watch after its first signal.
type brief struct{ lease.Watcher }

func (b brief) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	ctx, cancel := context.WithCancel(ctx)
	signals, err := b.Watcher.Watch(ctx, name)
	if err != nil {
		cancel()
		return nil, err
	}
	once := make(chan struct{}, 1)
	go func() {
		defer close(once)
		defer cancel()
		if _, open := <-signals; open {
			once <- struct{}{}
		}
	}()
	return once, nil
}

// A counted store gives a name without a record the number of all swaps as its version. Each write of another
// name changes that version, so the first swaps of names conflict.
type counted struct{ *Shelf }

func (c counted) Load(_ context.Context, name string) (lease.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	snap := c.read(name)
	if snap.Version == "never" {
		snap.Version = strconv.Itoa(c.swaps)
	}
	return snap, lease.CheckName(name)
}

func (c counted) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	time.Sleep(time.Nanosecond) // other calls come between a load and its swap
	if shelved, _ := c.Shelf.Load(ctx, name); shelved.Version == "never" {
		if now, err := c.Load(ctx, name); err == nil && now.Version != old.Version {
			return now, lease.ErrConflict
		}
		old.Version = "never"
	}
	return c.Shelf.Swap(ctx, name, old, next)
}

func (c counted) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if err := cmp.Or(ctx.Err(), lease.CheckName(prefix+"x")); err != nil {
			yield(lease.Entry{}, err)
			return
		}
		c.mu.Lock()
		names := slices.Sorted(maps.Keys(c.snaps))
		c.mu.Unlock()
		for _, name := range names {
			snap, err := c.Load(ctx, name)
			if err != nil {
				yield(lease.Entry{}, err)
				return
			}
			if strings.HasPrefix(name, prefix) && !yield(lease.Entry{Name: name, Record: snap.Record.At(snap.Now), Now: snap.Now}, nil) {
				return
			}
		}
	}
}

// A coarse clock shows its last tick.
type coarse struct {
	*leasefault.Clock
	tick time.Duration
}

func (c coarse) Now() time.Time { return c.Clock.Now().Truncate(c.tick) }

// A lagging store tells how coarse its clock is.
type lagging struct {
	lease.Store
	uncertainty time.Duration
}

func (s lagging) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	snap, err := s.Store.Load(ctx, name)
	snap.Uncertainty = s.uncertainty
	return snap, err
}

func (s lagging) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	snap.Uncertainty = s.uncertainty
	return snap, err
}
