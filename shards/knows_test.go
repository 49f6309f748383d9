package shards

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

// works reports how many of the names are worked, and how many works of them began in the time d.
func (c *town) worksOf(names []string, d time.Duration) (worked, began int) {
	c.mu.Lock()
	before := c.moves
	c.mu.Unlock()
	time.Sleep(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		for _, l := range c.at[name] {
			if l.ctx.Err() == nil {
				worked++
			}
		}
	}
	return worked, c.moves - before
}

// While processes know different names, every name is worked by a process that knows it, and nothing moves.
// When all know all names, the shares are balanced.
func TestDifferentNames(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		common, more, olds, news := 1+random.IntN(60), 1+random.IntN(60), 1+random.IntN(4), 1+random.IntN(3)
		inTown(t, common, func(c *town) {
			for range olds {
				c.start(0, nil)
			}
			c.expectBalance(2*interval+time.Second, "at the start")
			all := slices.Clone(c.names)
			for i := range more {
				all = append(all, fmt.Sprint("new", i))
			}
			for range news {
				p := c.start(0, nil)
				c.mu.Lock()
				p.extra = all[common:]
				c.mu.Unlock()
			}
			c.worksOf(all, 20*duration) // a shard that was taken in place of another process counts after six Durations
			worked, began := c.worksOf(all, 20*time.Minute)
			if worked != len(all) || began > 0 {
				t.Errorf("%d names are known to all and %d to %d of %d processes: %d are worked, and %d moved in 20 min", common, more, news, olds+news, worked, began)
			}
			c.mu.Lock()
			c.names = all
			for _, p := range c.procs {
				p.extra = nil
			}
			c.mu.Unlock()
			c.expectBalance(6*interval, "when all know all names")
			if _, began := c.worksOf(all, 10*time.Minute); began > 0 {
				t.Errorf("%d shards moved in 10 min after that", began)
			}
		})
	}
}

// planKnown moves a shard only between processes that know the same names of its bucket, never takes a shard
// from a member that does not, and gives no member more than its Max. With equal names it is plan.
func TestPlanKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var members []worker
		knows, holds := map[string]digest{}, map[string]int{}
		sets := []map[string]bool{{}, {}}
		var names []string
		for i := range rapid.IntRange(1, 40).Draw(t, "names") {
			name := fmt.Sprint("s", i)
			names = append(names, name)
			sets[0][name] = true
			if rapid.IntRange(0, 4).Draw(t, "shared") > 0 {
				sets[1][name] = true
			}
		}
		set := map[string]int{}
		for i := range rapid.IntRange(1, 5).Draw(t, "members") {
			m := worker{fmt.Sprint("m", i), rapid.IntRange(1, 3).Draw(t, "weight"), rapid.IntRange(0, 12).Draw(t, "max")}
			members = append(members, m)
			set[m.id] = rapid.IntRange(0, 1).Draw(t, "set")
			if i == 0 {
				set[m.id] = 0
			}
			knows[m.id] = digestOf(slices.Collect(maps.Keys(sets[set[m.id]])))
		}
		var shards []shard
		for i, name := range names {
			holder := rapid.SampledFrom([]string{"", "", "gone", "m0", "m1"}).Draw(t, "holder")
			if m, ok := knows[holder]; ok && holds[holder] >= max(members[holder[1]-'0'].max, 1) || ok && m != knows["m0"] && !sets[1][name] {
				holder = ""
			}
			holds[holder]++
			shards = append(shards, shard{name, holder, uint64(i)})
		}
		moves := planKnown(plan, members, knows, knows["m0"], shards)
		if len(members) == 1 || !slices.Contains(slices.Collect(maps.Values(set)), 1) {
			if want := plan(members, shards); fmt.Sprint(sortedMoves(moves)) != fmt.Sprint(sortedMoves(want)) {
				t.Fatalf("all know the same names, and the moves are %v, not %v", moves, want)
			}
		}
		for _, m := range moves {
			b := bucket(m.name)
			_, fromMember := knows[m.from]
			if knows[m.to][b] != knows["m0"][b] || fromMember && knows[m.from][b] != knows["m0"][b] {
				t.Fatalf("%v moves between processes that know different names", m)
			}
			holds[m.from]--
			holds[m.to]++
		}
		for _, m := range members {
			if m.max > 0 && holds[m.id] > m.max {
				t.Fatalf("%s gets %d shards, and its Max is %d", m.id, holds[m.id], m.max)
			}
		}
	})
}

func sortedMoves(moves []move) []move {
	return slices.SortedFunc(slices.Values(moves), func(a, b move) int { return strings.Compare(a.name, b.name) })
}

// Without a Max, each share is the exact weighted share rounded down or up, so one that is a whole number is
// not changed, whatever the members have.
func TestExactShares(t *testing.T) {
	if got := shares([]worker{{"a", 2, 0}, {"b", 1, 0}, {"c", 1, 0}}, map[string]int{"a": 2}, 2); got["a"] != 1 {
		t.Errorf("the shares of 2 shards by the weights 2, 1 and 1 are %v", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		var members []worker
		loads, sum, total := map[string]int{}, 0, 0
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			m := worker{fmt.Sprint("m", i), rapid.IntRange(1, 5).Draw(t, "weight"), 0}
			members, sum = append(members, m), sum+m.weight
			loads[m.id] = rapid.IntRange(0, 9).Draw(t, "load")
		}
		n := rapid.IntRange(0, 30).Draw(t, "n")
		for _, m := range members {
			got := shares(members, loads, n)[m.id]
			if d := got*sum - n*m.weight; d <= -sum || d >= sum {
				t.Fatalf("%d of %d shards for weight %d of %d", got, n, m.weight, sum)
			}
			total += got
		}
		if total != n {
			t.Fatalf("the shares are %d of %d shards", total, n)
		}
	})
}

// If all processes have their Max, the View, the log and the Trace say how many shards are idle, and the log
// does not say that the shares are balanced.
func TestTooLittleCapacity(t *testing.T) {
	inTown(t, 50, func(c *town) {
		var mu sync.Mutex
		var said bytes.Buffer
		var idle atomic.Int64
		p := c.start(0, func(o *Options) {
			o.Max = 20
			o.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &said}, nil))
			o.Trace = &Trace{Idle: func(n int) { idle.Store(int64(n)) }}
		})
		second := c.start(0, func(o *Options) { o.Max = 20 })
		time.Sleep(time.Hour)
		if v := p.group.View(); v.Idle != 10 || idle.Load() != 10 {
			t.Errorf("View.Idle is %d, and Trace.Idle got %d", v.Idle, idle.Load())
		}
		mu.Lock()
		if text := said.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "idle=10") || strings.Contains(text, "balanced") {
			t.Errorf("in an hour with idle shards, the log says\n%s", text)
		}
		said.Reset()
		mu.Unlock()
		third := c.start(0, nil) // without a Max
		c.expectBalance(4*interval, "with a third process")
		if v := p.group.View(); v.Idle != 0 || idle.Load() != 0 {
			t.Errorf("View.Idle is %d, and Trace.Idle got %d", v.Idle, idle.Load())
		}
		mu.Lock()
		if text := said.String(); !strings.Contains(text, "no shard is idle any more") || !strings.Contains(text, "balanced") {
			t.Errorf("with room for all shards, the log says\n%s", text)
		}
		mu.Unlock()
		third.crash()
		second.crash()
		time.Sleep(10 * time.Minute)
		if v := p.group.View(); v.Idle != 30 {
			t.Errorf("after two crashes, View.Idle is %d", v.Idle)
		}
	})
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// Somebody who holds the drain lease of a process takes its shards from it, under its owner or its ID, and
// gives them back by a release. Work that moves is told to stop before.
func TestDrain(t *testing.T) {
	inTown(t, 30, func(c *town) {
		for range 3 {
			c.start(0, nil)
		}
		c.expectBalance(2*interval+time.Second, "at the start")
		p := c.procs[1]
		p.stop.Store(int64(2 * time.Second))
		for _, who := range []string{p.group.o.Session.Owner, p.group.View().ID} {
			drain, err := session.New(c.store.Authority(), drainName("t/", who), &session.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			if ok, err := drain.Acquire(context.Background()); !ok {
				t.Fatal(err)
			}
			time.Sleep(4 * interval)
			loads := c.loads()
			if loads[p] != 0 || loads[c.procs[0]] != 15 || loads[c.procs[2]] != 15 {
				t.Errorf("drained by %s: the loads are %v", who, slices.Collect(maps.Values(loads)))
			}
			drained := 0
			for _, m := range c.procs[0].group.View().Members {
				if m.Drained {
					drained++
				}
			}
			if drained != 1 {
				t.Errorf("%d members are shown as drained", drained)
			}
			if err := drain.Close(context.Background()); err != nil {
				t.Error(err)
			}
			c.expectBalance(4*interval, "when the drain has ended")
		}
		if c.double > 0 {
			t.Errorf("%d shards were worked twice", c.double)
		}
	})
}

// Work that makes no progress is ended, and its shards go to another process. The process rests, and tries
// one shard again later.
func TestProgressTimeout(t *testing.T) {
	inTown(t, 20, func(c *town) {
		sick := c.start(0, func(o *Options) { o.ProgressTimeout = time.Minute })
		healthy := c.start(0, nil)
		_ = sick
		time.Sleep(3 * time.Minute) // the work of the first never calls session.Progress
		time.Sleep(10 * time.Minute)
		if loads := c.loads(); loads[healthy] < 19 {
			t.Errorf("the healthy process works on %d of 20", loads[healthy])
		}
		for _, s := range healthy.group.View().Shards {
			if s.State != lease.Leased {
				t.Errorf("%s is %v", s.Name, s.State)
			}
		}
	})
}

// Two groups whose prefixes contain one another do not touch each other's leases.
func TestNestedPrefixes(t *testing.T) {
	for _, inner := range []string{"t/shards/", "t/members/", "t/drain/", "t/shards/x/"} {
		inTown(t, 10, func(c *town) {
			broke := 0
			trace := &Trace{Broke: func(string, string) { c.mu.Lock(); broke++; c.mu.Unlock() }}
			for range 2 {
				c.start(0, func(o *Options) { o.Trace = trace })
			}
			outer := c.procs[0]
			nested := newTown(t, 10, duration)
			nested.store, nested.prefix = c.store, inner
			for range 2 {
				nested.start(0, func(o *Options) { o.Trace = trace })
			}
			defer nested.end()
			time.Sleep(time.Minute)
			_, began := c.worksOf(nil, 30*time.Minute)
			_, alsoBegan := nested.worksOf(nil, time.Minute)
			if s := c.unbalanced() + nested.unbalanced(); s != "" || broke > 0 || began+alsoBegan > 0 {
				t.Errorf("%s: %s; %d leases broken, %d shards moved", inner, s, broke, began+alsoBegan)
			}
			if n := len(outer.group.View().Members); n != 2 {
				t.Errorf("%s: the outer group has %d members", inner, n)
			}
		})
	}
}
