package leasetest

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
)

var swapRules = []rule{
	{"S1/unknown-name-is-absent", "a name that the store does not know gives a record that is zero but for its epoch", 0, func(p *probe) {
		s := p.store()
		snap := s.load(s.name)
		if want := (lease.Record{Epoch: snap.Record.Epoch}); snap.Record != want {
			s.Errorf("the store shows %s", outcomeText(snap.Record, nil))
		}
		if snap.Version == "" {
			s.Errorf("the version of an absent record is empty")
		}
	}},
	{"S1/swap-commits", "a swap of the version that was loaded commits, and returns what it committed", 0, func(p *probe) {
		s := p.store()
		old := s.load(s.name)
		next := s.leased(old, 100*s.D)
		put := s.put(s.name, old, next)
		if !s.same(put.Record, next) {
			s.Errorf("the swap returned %s, and not %s", recordText(put.Record), recordText(next))
		}
		if seen := s.shows(s.name, next); seen.Version != put.Version {
			s.Errorf("the swap returned version %q, and a load %q", put.Version, seen.Version)
		}
		s.put(s.name, put, s.leased(put, 100*s.D)) // a snapshot from a swap is as good as one from a load
	}},
	{"S1/stale-swap-conflicts", "a swap of a version that is no longer the current one is a conflict, and certainly not applied", 0, func(p *probe) {
		s := p.store()
		for _, what := range []string{"absence", "a record"} {
			old := s.load(s.name)
			first, second := s.leased(old, 100*s.D), s.leased(old, 100*s.D)
			now := s.put(s.name, old, first)
			snap, err := s.Swap(s.ctx, s.name, old, second)
			if !errors.Is(err, lease.ErrConflict) {
				s.Errorf("the second swap of %s: %v", what, err)
			}
			if snap.Version != "" && (snap.Version != now.Version || !s.same(snap.Record, first)) {
				s.Errorf("the conflict came with version %q, %s", snap.Version, recordText(snap.Record))
			}
			s.shows(s.name, first)
		}
	}},
	{"S1/version-decides-not-record", "a swap conflicts though the record is again what it was when it was loaded", 0, func(p *probe) {
		s := p.store()
		old := s.load(s.name)
		old = s.put(s.name, old, s.leased(old, 100*s.D))
		other := old.Record
		other.Owner = "another"
		now := s.put(s.name, old, other)
		now = s.put(s.name, now, old.Record)
		if _, err := s.Swap(s.ctx, s.name, old, other); !errors.Is(err, lease.ErrConflict) {
			s.Errorf("a swap of version %q, when %q shows the same record: %v", old.Version, now.Version, err)
		}
	}},
	{"S1/one-swap-wins", "of any number of swaps of one version, at the same time, one commits at most", 0, func(p *probe) {
		s := p.store()
		for range 20 {
			old := s.load(s.name)
			var won atomic.Pointer[lease.Record]
			var wins atomic.Int32
			s.together(8, func(i int) {
				next := s.leased(old, 100*s.D)
				next.ID[0] = byte(i)
				switch _, err := s.Swap(s.ctx, s.name, old, next); {
				case err == nil:
					wins.Add(1)
					won.Store(&next)
				case !errors.Is(err, lease.ErrConflict):
					s.Errorf("a swap that must commit or conflict: %v", err)
				}
			})
			switch n := wins.Load(); n {
			case 0: // each conflicted without need, and alone it does not for ever
				s.put(s.name, old, s.leased(old, 100*s.D))
			case 1:
				s.shows(s.name, *won.Load())
			default:
				s.Fatalf("%d of 8 swaps of version %q committed", n, old.Version)
			}
		}
	}},
	{"S1/an-ended-context-is-no-conflict", "whatever becomes of its context, a swap that conflicts was not applied, and one that commits was", 0, func(p *probe) {
		s := p.store()
		began := time.Now()
		old := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		took := time.Since(began)
		for i := range 40 {
			ctx := s.endingAfter(took*time.Duration(i)/20, i)
			if i == 0 {
				<-ctx.Done() // it is done already
			}
			next := s.leased(old, 100*s.D)
			_, err := s.Swap(ctx, s.name, old, next)
			<-ctx.Done()
			old = s.load(s.name)
			if applied := old.Record.ID == next.ID; err == nil && !applied || errors.Is(err, lease.ErrConflict) && applied {
				s.Errorf("a swap whose context ended says %v, and it was applied: %v", err, applied)
			}
		}
	}},
	{"S1/no-update-is-lost", "what a swap committed is what the next one starts from", 0, func(p *probe) {
		s := p.store()
		s.increment([]storeProbe{s}, s.name)
	}},
	{"S8/load-is-never-stale", "a load that begins after a swap was answered shows it, to whoever loads", 0, func(p *probe) {
		s := p.store()
		old := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		var committed atomic.Uint64
		committed.Store(old.Record.Epoch)
		var done atomic.Bool
		s.together(4, func(i int) {
			if i == 0 {
				defer done.Store(true)
				for range 50 {
					var err error
					if old, err = s.swap(s.name, old, s.leased(old, 100*s.D)); err != nil {
						s.Errorf("swap by the only writer: %v", err)
						return
					}
					committed.Store(old.Record.Epoch)
					if seen, err := s.Load(s.ctx, s.name); err != nil || seen.Version != old.Version {
						s.Errorf("load after the swap of version %q: version %q, %v", old.Version, seen.Version, err)
					}
				}
				return
			}
			for n := 0; !done.Load(); n++ {
				s.pauseNowAndThen(n) // a load may take no time, and a swap some
				least := committed.Load()
				if seen, err := s.Load(s.ctx, s.name); err != nil || seen.Record.Epoch < least {
					s.Errorf("after epoch %d was committed, a load shows %d, %v", least, seen.Record.Epoch, err)
					return
				}
			}
		})
	}},
	{"S8/done-context-is-no-free-lease", "a load whose context is done already gets an error, or shows the record as it is", 0, func(p *probe) {
		s := p.store()
		next := s.leased(s.load(s.name), 100*s.D)
		s.put(s.name, s.load(s.name), next)
		ctx, cancel := context.WithCancel(s.ctx)
		cancel()
		if snap, err := s.Load(ctx, s.name); err == nil && !s.same(snap.Record, next) {
			s.Errorf("the load shows %s, and not %s", recordText(snap.Record), recordText(next))
		}
	}},
	{"R3/what-is-written-is-read", "every valid record is read as it was written", 0, func(p *probe) {
		s := p.store()
		on := s.load(s.name)
		id, until := s.id(), on.Now.Round(0).UTC().Add(100*s.D)
		far := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
		for what, r := range map[string]lease.Record{
			"leased":    {State: lease.Leased, ID: id, Owner: "worker-1", Duration: 100 * s.D, Until: until.Add(123_456_789)},
			"far":       {State: lease.Leased, ID: id, Duration: lease.Infinite - 1, Until: far},
			"infinite":  {State: lease.Leased, ID: id, Duration: lease.Infinite},
			"breaking":  {State: lease.Breaking, ID: id, Duration: time.Nanosecond, Until: until},
			"endless":   {State: lease.Breaking, ID: id, Duration: lease.Infinite, Until: until},
			"expired":   {State: lease.Expired, ID: id, Duration: time.Second},
			"broken":    {State: lease.Broken, ID: id, Duration: lease.Infinite},
			"released":  {State: lease.Available, ID: id, Owner: "worker-1", Duration: time.Second},
			"available": {},
			"quotes":    {State: lease.Expired, ID: id, Owner: "a 'quoted' \"owner\" \\ owner=\"x\"\n\t", Duration: 1},
			"controls":  {State: lease.Expired, ID: id, Owner: "\x01\x1b\x7f\r\n\u0085\u2028\ufeff", Duration: 1},
			"unicode":   {State: lease.Expired, ID: id, Owner: "Zoë Ω 租约 \U0001F512", Duration: 1},
			"long":      {State: lease.Expired, ID: id, Owner: strings.Repeat("o", lease.MaxLabel), Duration: 1},
			"late":      {State: lease.Expired, ID: id, Duration: 1, Epoch: math.MaxInt64},
		} {
			if what == "infinite" && !s.can(CanBeInfinite) || strings.HasPrefix(what, "break") && !s.can(CanBreak) {
				continue
			}
			name := s.name + "/" + what
			old := s.load(name)
			r.Epoch = max(r.Epoch, old.Record.Epoch+1)
			s.put(name, old, r)
			s.shows(name, r)
		}
	}},
	{"R2/what-cannot-be-read-is-an-error", "what is no record is an error that names the lease, and never taken for one that is free", hasCorrupt, func(p *probe) {
		s := p.store()
		s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		s.history.printf("somebody spoils the record")
		s.Options.Corrupt(s.probe.TB, s.bare, s.name)
		if snap, err := s.Load(s.ctx, s.name); err == nil || !strings.Contains(err.Error(), s.name) {
			s.Errorf("a load shows %s", outcomeText(snap.Record, err))
		}
		if res, err := lease.NewAuthority(s.Store).Do(s.ctx, s.name, acquire(s.id(), s.D)); err == nil || lease.CodeOf(err).Refusal() {
			s.Errorf("an acquire gets %s", outcomeText(res.Record, err))
		}
	}},
	{"S3/reopening-keeps-what-was-acknowledged", "what was acknowledged is there after the store was opened again", hasReopen, func(p *probe) {
		s := p.store()
		put := s.put(s.name, s.load(s.name), s.leased(s.load(s.name), 100*s.D))
		s.reopen()
		seen := s.shows(s.name, put.Record)
		s.put(s.name, seen, s.leased(seen, 100*s.D))
	}},
}

// together runs f in n goroutines and waits for them.
func (p *probe) together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// increment raises the epochs under the names through the clients, all at once and each client
// under the name of its place, and requires that no swap is lost.
func (s storeProbe) increment(clients []storeProbe, names ...string) {
	const workers, each = 6, 10
	var mu sync.Mutex
	began := map[string]uint64{} // the epoch that the first swap raised: until then it may rise by itself
	s.together(workers, func(i int) {
		c, name := clients[i%len(clients)], names[i%len(names)]
		for range each {
			for {
				old, err := c.Load(s.ctx, name)
				if err != nil {
					s.Errorf("load: %v", err)
					return
				}
				if s.Bubble {
					time.Sleep(time.Nanosecond) // the others load too
				}
				_, err = c.Swap(s.ctx, name, old, s.leased(old, 100*s.D))
				if err == nil {
					mu.Lock()
					if first, ok := began[name]; !ok || old.Record.Epoch < first {
						began[name] = old.Record.Epoch
					}
					mu.Unlock()
					break
				}
				if !errors.Is(err, lease.ErrConflict) {
					s.Errorf("swap: %v", err)
					return
				}
			}
		}
	})
	want := uint64(workers / len(names) * each)
	for _, name := range names {
		if got := s.load(name).Record.Epoch - began[name]; got != want {
			s.Errorf("%d increments were acknowledged, and %d are there", want, got)
		}
	}
}

// breathe lets time pass now and then, in a loop that may take none and has come to its n-th
// round: more and more, so that it does not go round for ever beside something that is slow.
func (p *probe) pauseNowAndThen(n int) {
	if n%50 == 49 {
		p.Sleep(time.Duration(1+n/50) * p.Unit / 1000)
	}
}
