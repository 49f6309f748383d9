package shards

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

const (
	duration = 30 * time.Second
	interval = 5 * time.Second
)

func inTown(t *testing.T, shards int, f func(c *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newTown(t, shards, duration)
		f(c)
		c.end()
	})
}

// Processes that start together share the shards, and nothing moves twice. A process that starts,
// leaves or crashes changes the shares in time, with no more moves than needed.
func TestLife(t *testing.T) {
	inTown(t, 100, func(c *town) {
		for range 3 {
			c.start(0, nil)
		}
		c.expectBalance(2*interval+time.Second, "at the start")
		moved := func(want int, what string) {
			if c.moves != want {
				c.t.Errorf("%s: %d works began, want %d", what, c.moves, want)
			}
			c.moves = 0
		}
		moved(100, "start")
		p := c.start(0, nil)
		c.expectBalance(2*interval+time.Second, "after a start")
		moved(25, "a fourth process")
		p.leave()
		c.expectBalance(interval+time.Second, "after a leave")
		moved(25, "a process leaves")
		c.longest = 0
		c.procs[0].crash()
		c.expectBalance(duration+interval+time.Second, "after a crash")
		if c.moves < 33 || c.moves > 34 {
			c.t.Errorf("%d moves after a crash", c.moves)
		}
		if c.longest > duration+interval {
			c.t.Errorf("idle for %v after a crash", c.longest)
		}
	})
}

// Each shard moves at most twice in a rolling restart of all processes.
func TestRollingRestart(t *testing.T) {
	inTown(t, 100, func(c *town) {
		for range 5 {
			c.start(0, nil)
		}
		c.expectBalance(2*interval+time.Second, "at the start")
		c.moves = 0
		first := map[string]uint64{}
		for name, tok := range c.tokens {
			first[name], _ = tok.Epoch()
		}
		for _, p := range slices.Clone(c.procs) {
			p.leave()
			c.expectBalance(interval+time.Second, "after a leave")
			c.start(0, nil)
			c.expectBalance(2*interval+time.Second, "after a start")
		}
		for name, tok := range c.tokens {
			if n, _ := tok.Epoch(); n > first[name]+2 {
				c.t.Errorf("%s has moved %d times", name, n-first[name])
			}
		}
	})
}

func TestWeights(t *testing.T) {
	inTown(t, 90, func(c *town) {
		heavy := c.start(0, func(o *Options) { o.Weight = 3 })
		light := c.start(0, nil)
		small := c.start(0, func(o *Options) { o.Max = 10 })
		c.expectBalance(2*interval+time.Second, "at the start")
		if l := c.loads(); l[heavy] != 60 || l[light] != 20 || l[small] != 10 {
			c.t.Errorf("%d %d %d", l[heavy], l[light], l[small])
		}
	})
}

// If the work does not return within Grace, the lease is broken. The holder has time to notice the break
// before another process works with a newer token.
func TestHungWork(t *testing.T) {
	inTown(t, 10, func(c *town) {
		var broke, taken []time.Duration
		p := c.start(0, nil)
		p.stop.Store(int64(time.Hour))
		c.expectBalance(2*interval+time.Second, "alone")
		began := time.Now()
		c.start(0, func(o *Options) {
			o.Trace = &Trace{Broke: func(name, id string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				broke = append(broke, time.Since(began))
			}, Taken: func(string, lease.Token) {
				c.mu.Lock()
				defer c.mu.Unlock()
				taken = append(taken, time.Since(began))
			}}
		})
		c.expectBalance(2*duration+6*interval, "after the grace")
		if c.loads()[p] != 5 {
			t.Errorf("the first has %d", c.loads()[p])
		}
		c.mu.Lock()
		if len(broke) != 5 || slices.Min(broke) < duration+2*interval {
			t.Errorf("breaks after %v", broke)
		}
		if first := slices.Min(taken); first < slices.Max(broke)+duration/2 {
			t.Errorf("breaks after %v, and taken after %v", broke, taken)
		}
		for i := range 10 {
			c.names = append(c.names, fmt.Sprint("more", i))
		}
		c.mu.Unlock()
		c.expectBalance(2*interval+time.Second, "with more names, and the old work still hangs")
	})
}

// A process that stops hands on the shards whose work has returned, even if other work hangs.
func TestStopWhileWorkHangs(t *testing.T) {
	inTown(t, 10, func(c *town) {
		for range 2 {
			c.start(0, nil)
		}
		c.expectBalance(2*interval+time.Second, "at the start")
		first, other := c.procs[0], c.procs[1]
		for name, ls := range c.at {
			if ls[0].p == first {
				first.hangs.Store(name)
			}
		}
		first.leave()
		time.Sleep(interval + time.Second)
		if n := c.loads()[other]; n != 9 {
			t.Errorf("the other works on %d", n)
		}
		time.Sleep(time.Hour) // Run waits for the work
		select {
		case <-first.ended:
		default:
			t.Error("Run has not returned")
		}
	})
}

// A shard whose work fails in one process moves to another, and does not come back.
func TestFailingWork(t *testing.T) {
	inTown(t, 10, func(c *town) {
		p := c.start(0, nil)
		c.start(0, nil)
		c.start(0, nil)
		c.expectBalance(2*interval+time.Second, "at the start")
		p.failOne()
		c.expectBalance(2*duration+8*interval, "after the failures")
		c.moves = 0
		c.expectBalance(time.Hour, "an hour later")
		if c.moves != 0 {
			c.t.Errorf("%d moves in an hour", c.moves)
		}
	})
}

// Work that fails in every process does not make other work move.
func TestWorkFailsEverywhere(t *testing.T) {
	inTown(t, 6+rand.IntN(15), func(c *town) {
		for range 3 {
			c.start(0, nil).fails.Store(c.names[0])
		}
		time.Sleep(20 * duration)
		before := c.works()
		time.Sleep(2 * time.Hour)
		if n := c.works() - before; n > 0 {
			t.Errorf("%d moves of %d shards", n, len(c.names))
		}
	})
}

// Names that the store refuses take no part of a share, and the View shows why. Later, the store grants them.
func TestRefusedNames(t *testing.T) {
	inTown(t, 4, func(c *town) {
		for i := range 1 + rand.IntN(5) {
			c.names = append(c.names, fmt.Sprint("bad", i))
		}
		c.refuses.Store(true)
		first := c.start(0, nil)
		time.Sleep(20 * duration)
		second := c.start(0, nil)
		time.Sleep(20 * duration)
		v, n := first.group.View(), c.loads()[second]
		if n != 2 || v.Moves != 0 || v.Shards[4].Err == nil || v.Shards[0].Err != nil {
			t.Errorf("the second works on %d of 4, and the first sees %+v", n, v)
		}
		c.refuses.Store(false)
		c.expectBalance(20*duration, "after all names are granted")
	})
}

// A shard that a process has taken in place of another counts towards its Max.
func TestMaxWithTakenShards(t *testing.T) {
	inTown(t, 10, func(c *town) {
		p := c.start(0, nil)
		c.start(0, func(o *Options) { o.Max = 4 })
		c.start(0, func(o *Options) { o.Max = 4 })
		c.expectBalance(2*interval+time.Second, "at the start")
		p.failOne()
		time.Sleep(2*duration + 8*interval)
		p.leave()
		c.expectBalance(2*interval+time.Second, "after a leave")
	})
}

// Nothing moves in a week in which nothing happens.
func TestQuietWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTown(t, 10, 10*time.Minute)
		for range 3 {
			c.start(0, nil)
		}
		c.expectBalance(2*c.options.Session.Duration, "at the start")
		c.moves = 0
		c.expectBalance(7*24*time.Hour, "after a week")
		if c.moves != 0 {
			t.Errorf("%d moves", c.moves)
		}
		c.end()
	})
}

// A store that is silent for 20 s: no two work, and afterwards all is balanced.
func TestSilentStore(t *testing.T) {
	for _, silence := range []time.Duration{20 * time.Second, 5 * time.Minute} {
		inTown(t, 50, func(c *town) {
			for range 4 {
				c.start(0.0005, nil)
			}
			c.expectBalance(2*interval+time.Second, "at the start")
			for _, p := range c.procs {
				p.cut.Store(true)
			}
			time.Sleep(silence)
			if err := c.procs[0].group.View().Err; silence > duration && !errors.Is(err, follow.ErrSilent) {
				t.Errorf("the View has %v", err)
			}
			for _, p := range c.procs {
				p.cut.Store(false)
			}
			c.expectBalance(2*duration+4*interval, "after the silence")
		})
	}
}

// A process that is paused loses its shards, and gets its share back.
func TestPaused(t *testing.T) {
	inTown(t, 50, func(c *town) {
		p := c.start(0.0001, nil)
		c.start(0, nil)
		c.expectBalance(2*interval+time.Second, "at the start")
		p.paused.Store(true)
		p.clock.Pause()
		p.cut.Store(true)
		time.Sleep(2 * time.Minute)
		if n := len(c.loads()); n != 2 {
			c.t.Error(n)
		}
		p.cut.Store(false)
		p.clock.Resume()
		time.Sleep(time.Second)
		p.paused.Store(false)
		c.expectBalance(3*interval+time.Second, "after the pause")
	})
}

// Names that come and go, duplicates, an invalid name, and a function that fails.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		var mu sync.Mutex
		names, fails, hangs := []string{"a", "b", "a", "", "x\x00"}, false, false
		var failed []string
		working := map[string]error{}
		g, err := New(store.Authority(), "n/", &Options{Logger: slog.New(slog.DiscardHandler), Trace: &Trace{Failed: func(name string, _ error) {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, name)
		}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- g.Run(ctx, func(ctx context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				if hangs {
					mu.Unlock()
					<-ctx.Done()
					time.Sleep(time.Minute)
					mu.Lock()
				}
				if fails {
					return nil, errors.New("no names")
				}
				return names, nil
			}, func(ctx context.Context, name string, _ lease.Token) error {
				mu.Lock()
				working[name] = nil
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				defer mu.Unlock()
				working[name] = context.Cause(ctx)
				return nil
			})
		}()
		set := func(f func()) {
			time.Sleep(2*interval + time.Second)
			mu.Lock()
			defer mu.Unlock()
			f()
		}
		set(func() {
			if len(working) != 3 { // the empty name is a valid one: "n/shards/"
				t.Errorf("works on %v", working)
			}
			if n := len(failed); n < 3 || n > 4 || failed[n-1] != "x\x00" {
				t.Errorf("failed in each of three or four lists: %q", failed)
			}
			v := g.View()
			if len(v.Shards) != 3 || len(v.Members) != 1 || v.Members[0].Shards != 3 {
				t.Errorf("%+v", v)
			}
			if v.Err != nil || v.Moves != 0 {
				t.Errorf("%d moves, %v", v.Moves, v.Err)
			}
			fails = true
		})
		set(func() {
			if working["a"] != nil || g.View().Err == nil || !slices.Contains(failed, "") {
				t.Errorf("%v, %v", working, g.View().Err)
			}
			fails, hangs = false, true
		})
		set(func() {})
		set(func() {
			if v := g.View(); working["a"] != nil || v.Err == nil || v.Interval != interval {
				t.Errorf("%v, %v, %v", working, v.Err, v.Interval)
			}
			hangs, names = false, []string{"b", "c"}
		})
		time.Sleep(2 * time.Minute)
		set(func() {
			if working["a"] != ErrRemoved || working["c"] != nil || len(working) != 4 {
				t.Errorf("%v", working)
			}
			names = nil
		})
		set(func() {
			if working["b"] != ErrRemoved || working["c"] != ErrRemoved {
				t.Errorf("%v", working)
			}
			names = []string{"d"}
		})
		set(func() {})
		if err := g.Run(ctx, func(context.Context) ([]string, error) { return nil, nil }, func(context.Context, string, lease.Token) error { return nil }); lease.CodeOf(err) != lease.ErrOption {
			t.Errorf("a second Run: %v", err)
		}
		cancel()
		if err := <-ended; err != nil || working["d"] != ErrStopping {
			t.Errorf("%v, %v", err, working)
		}
		for e := range store.List(context.Background(), "n/") {
			if e.Record.State.Locked() {
				t.Errorf("%s is locked", e.Name)
			}
		}
		time.Sleep(time.Minute)
	})
}

// One list for each process and Interval, and the renewals.
func TestCost(t *testing.T) {
	inTown(t, 100, func(c *town) {
		for range 4 {
			c.start(0, nil)
		}
		c.expectBalance(2*interval+time.Second, "at the start")
		c.requests.Store(0)
		c.lists.Store(0)
		time.Sleep(time.Hour)
		if n := c.lists.Load(); n > 4*720+4 {
			c.t.Errorf("%d lists in an hour", n)
		}
		if n := c.requests.Load(); n > 104*3600/9 {
			c.t.Errorf("%d requests in an hour", n)
		}
	})
}

// The Interval grows if a list takes long.
func TestAdapt(t *testing.T) {
	o := &Options{Interval: interval, Session: &session.Options{Duration: duration}}
	for took, want := range map[time.Duration]time.Duration{0: interval, 250 * time.Millisecond: interval, time.Second: 20 * time.Second, time.Minute: duration} {
		if got := o.adapted(took); got != want {
			t.Errorf("%v: %v, want %v", took, got, want)
		}
	}
}

type noList struct{ lease.Authority }

func TestNewRefuses(t *testing.T) {
	a := memory.New(nil).Authority()
	for name, o := range map[string]*Options{
		"Options.Interval": {Interval: 5}, "Options.Grace": {Grace: 5}, "Options.Weight": {Weight: -1}, "Options.Max": {Max: -1},
		"Options.Session.Duration": {Session: &session.Options{Duration: lease.Infinite}},
		"Options.Session.TakeOver": {Session: &session.Options{TakeOver: true, Owner: "x"}},
		"Options.RetryDelay":       {Session: &session.Options{RetryDelay: -1}},
	} {
		_, err := New(a, "p/", o)
		if e := (*lease.FieldError)(nil); !errors.As(err, &e) || e.Field != name || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err) // an error about a default would name a field that was not given
		}
	}
	if _, err := New(noList{a}, "p/", nil); lease.CodeOf(err) != lease.ErrOption {
		t.Error(err)
	}
	if _, err := New(nil, "p/", nil); lease.CodeOf(err) != lease.ErrOption {
		t.Error(err)
	}
	for _, prefix := range []string{"", strings.Repeat("p", 1010)} {
		if _, err := New(a, prefix, nil); lease.CodeOf(err) != lease.ErrName {
			t.Errorf("a prefix of %d bytes: %v", len(prefix), err)
		}
	}
}

// A request that can never be granted ends Run.
func TestRunBadArgument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(&memory.Options{Limits: lease.Limits{MaxDuration: time.Second}})
		g, err := New(store.Authority(), "x/", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Run(t.Context(), func(context.Context) ([]string, error) { return nil, nil }, func(context.Context, string, lease.Token) error { return nil })
		if lease.CodeOf(err) != lease.ErrDuration {
			t.Errorf("the store grants at most 1s: %v", err)
		}
	})
}

// Processes that run one after another use few names, because a store may keep the record of each.
func TestFewNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(nil)
		for range 200 {
			g, err := New(m.Authority(), "p/", &Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err = g.Run(ctx, func(context.Context) ([]string, error) { return nil, nil }, func(context.Context, string, lease.Token) error { return nil })
			cancel()
			if ms := g.View().Members; err != nil || len(ms) != 1 || !strings.Contains(ms[0].Owner, fmt.Sprintf("_%d_", os.Getpid())) {
				t.Fatalf("members %+v, which do not name this process: %v", ms, err)
			}
		}
		names := 0
		for range m.List(t.Context(), "p/") {
			names++
		}
		if names == 0 || names > 64 {
			t.Errorf("%d names after 200 processes", names)
		}
	})
}

// The owners of leases can be read back, whatever the Owner of the program.
func TestOwners(t *testing.T) {
	for _, owner := range []string{"", "host", "a/b", "x weight=3 max=4", "x offers=2", "a#5"} {
		for _, n := range []int{unlimited, 0, 3} {
			said := digestOf([]string{"a", owner})
			m, offers, knows, ok := parseMember(memberOwner(label(owner, "1f"), 2, 7, n, said))
			if want := (Member{ID: "1f", Owner: owner, Weight: 2, Max: 7}); !ok || m != want || offers != n || knows != said {
				t.Errorf("%q: %+v offers %d, want %d; knows %v, want %v", owner, m, offers, n, knows, said)
			}
		}
		name, id, order, ok := parseShard(shardOwner(label(owner, "1f"), 9))
		if !ok || name != owner || id != "1f" || order != 9 {
			t.Errorf("%q: %q %q %d", owner, name, id, order)
		}
	}
	l, err := read(func(yield func(lease.Entry, error) bool) {
		for i := range 2 {
			yield(lease.Entry{Name: memberName("p/", i), Record: lease.Record{State: lease.Leased, Owner: memberOwner(member.ID(lease.ID{}, "p/"), 1, 0, 0, digest{})}}, nil)
		}
	}, "p/")
	if len(l.members) != 1 || err != nil {
		t.Errorf("two leases of a process are members %+v: %v", l.members, err)
	}
	if _, _, _, ok := parseMember("operator"); ok {
		t.Error("a foreign owner is a member")
	}
	if _, _, _, ok := parseShard("operator"); ok {
		t.Error("a foreign owner is a process")
	}
}

// A panic of the work releases the lease of its shard and ends the process.
func TestPanic(t *testing.T) {
	if os.Getenv("SHARDS_PANIC") != "" {
		store := memory.New(nil)
		g, err := New(releases{store.Authority(), store}, "p/", &Options{Interval: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_ = g.Run(t.Context(), func(context.Context) ([]string, error) { return []string{"a"}, nil },
			func(context.Context, string, lease.Token) error { panic("boom") })
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "TestPanic$")
	cmd.Env = append(os.Environ(), "SHARDS_PANIC=1")
	out, err := cmd.CombinedOutput()
	if text := string(out); err == nil || !strings.Contains(text, "panic: boom") || !strings.Contains(text, "release p/shards/a") {
		t.Errorf("%v\n%s", err, text)
	}
}

// releases prints each release.
type releases struct {
	lease.Authority
	lease.Lister
}

func (a releases) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == lease.ActionRelease {
		fmt.Println("release", name)
	}
	return a.Authority.Do(ctx, name, req)
}

// The hooks and the records tell of each shard once.
func TestReports(t *testing.T) {
	inTown(t, 2, func(c *town) {
		var mu sync.Mutex
		got := map[string]int{}
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			got[what]++
		}
		var text strings.Builder
		p := c.start(0, func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&lines{to: &text}, &slog.HandlerOptions{Level: slog.LevelDebug}))
			o.Trace = &Trace{
				Taken:    func(string, lease.Token) { note("taken") },
				Given:    func(_ string, _ lease.Token, cause error, _ time.Duration) { note(cause.Error()) },
				Lost:     func(_ string, _ lease.Token, err error) { note("lost"); note(lease.CodeOf(err).Error()) },
				Failed:   func(name string, _ error) { note("failed " + name) },
				Balanced: func(mine, members int) { note(fmt.Sprintf("balanced %d of %d", mine, members)) },
			}
		})
		time.Sleep(2 * interval)
		q := c.start(0, nil)
		c.expectBalance(3*interval, "after a start")
		q.leave()
		c.expectBalance(2*interval, "after a leave")
		p.cut.Store(true)
		time.Sleep(2 * duration)
		p.cut.Store(false)
		c.expectBalance(3*interval, "after a cut")
		p.leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		delete(got, "failed ")
		want := map[string]int{
			"taken": 5, ErrMoving.Error(): 1, ErrStopping.Error(): 2, "lost": 2, lease.ErrStopWindow.Error(): 2,
			"balanced 2 of 1": 3, "balanced 1 of 2": 1,
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		for what, n := range map[string]int{
			`DEBUG msg="shards: taken"`: 5, `DEBUG msg="shards: given"`: 3, `WARN msg="shards: lost"`: 2, `INFO msg="shards: balanced"`: 4,
		} {
			if m := strings.Count(text.String(), "level="+what); m != n {
				t.Errorf("%d records %q, want %d", m, what, n)
			}
		}
	})
}

// lines is a writer for several goroutines.
type lines struct {
	mu sync.Mutex
	to *strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// If names ends its goroutine, Run reports this and still returns. If work does, the shard has failed.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var named, works, failed, taken, given atomic.Int64
		g, err := New(memory.New(nil).Authority(), "p/", &Options{Logger: slog.New(slog.DiscardHandler), Trace: &Trace{
			Failed: func(name string, _ error) {
				if name != "" {
					failed.Add(1)
				}
			},
			Taken: func(string, lease.Token) { taken.Add(1) },
			Given: func(string, lease.Token, error, time.Duration) { given.Add(1) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- g.Run(ctx, func(context.Context) ([]string, error) {
				if named.Add(1) > 100 {
					runtime.Goexit()
				}
				return []string{"a"}, nil
			}, func(context.Context, string, lease.Token) error {
				works.Add(1)
				runtime.Goexit()
				return nil
			})
		}()
		time.Sleep(time.Hour)
		v := g.View()
		if n := works.Load(); failed.Load() != n || n < 100 || n > 120 || v.Shards[0].Err != errExits {
			t.Errorf("%d failures of %d works in an hour, and the View has %+v", failed.Load(), n, v.Shards)
		}
		if n := works.Load(); taken.Load() != n || given.Load() != n {
			t.Errorf("%d works were reported as taken, and %d as given, of %d", taken.Load(), given.Load(), n)
		}
		if v.Err == nil || named.Load() < 700 {
			t.Errorf("names was called %d times in an hour, and the View has %v", named.Load(), v.Err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// After a loss, the View says why a shard is free, and later that its work has not ended. Trace.Failed is
// called. When this process or another has the shard, the View has no error.
func TestViewAfterLoss(t *testing.T) {
	inTown(t, 2+rand.IntN(3), func(c *town) {
		var failed atomic.Int64
		p := c.start(0, func(o *Options) {
			o.Trace = &Trace{Failed: func(name string, err error) {
				if name == c.names[0] && err == errLate {
					failed.Add(1)
				}
			}}
		})
		c.expectBalance(2*interval+time.Second, "alone")
		lose := func() error {
			if _, err := lease.Break(t.Context(), c.store.Authority(), shardName("t/", c.names[0]), lease.Grace(0)); err != nil {
				t.Error(err)
			}
			time.Sleep(duration/3 + interval) // p learns of the break at its next renewal
			return p.group.View().Shards[0].Err
		}
		p.hangs.Store(c.names[0])
		if err := lose(); !errors.Is(err, lease.ErrLost) && err != errLate {
			t.Errorf("the View has %v after a loss", err)
		}
		time.Sleep(10 * time.Minute)
		if err := p.group.View().Shards[0].Err; err != errLate || failed.Load() < 100 {
			t.Errorf("the View has %v while the work hangs, and Failed was called %d times", err, failed.Load())
		}
		time.Sleep(time.Hour)
		if err := p.group.View().Shards[0].Err; err != nil || c.loads()[p] != len(c.names) {
			t.Errorf("the View has %v when the shard is held again", err)
		}
		lose()
		c.start(0, nil)
		time.Sleep(2 * trial * duration)
		if s := p.group.View().Shards[0]; s.Err != nil || s.ID == "" || s.ID == p.group.View().ID {
			t.Errorf("the View has %+v when another process holds the shard", s)
		}
	})
}

// A process in which all work fails soon has no shard, and tries one now and then, which is all that moves.
// When its work goes well again, it has its share.
func TestAllWorkFailsInOneProcess(t *testing.T) {
	inTown(t, 20+rand.IntN(20), func(c *town) {
		bad := c.start(0, nil)
		for range 1 + rand.IntN(4) {
			c.start(0, nil)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(time.Hour))))
		bad.breakDown()
		time.Sleep(20 * duration)
		before := c.works()
		for range 240 {
			time.Sleep(duration)
			idle := len(c.names)
			for _, n := range c.loads() {
				idle -= n
			}
			if idle > 1 {
				t.Fatalf("%d shards are idle", idle)
			}
		}
		if n := c.works() - before; n > 10 {
			t.Errorf("%d works began in 2 hours", n)
		}
		bad.broken.Store(false)
		c.expectBalance((longestQuarantine+trial)*duration, "after the process is mended")
	})
}

// If all work fails for a time in all processes, such as in an outage, all have their shares soon afterwards.
func TestAllWorkFails(t *testing.T) {
	inTown(t, 12+rand.IntN(20), func(c *town) {
		for range 2 + rand.IntN(4) {
			c.start(0, nil)
		}
		c.expectBalance(2*interval+time.Second, "at the start")
		for _, p := range c.procs {
			p.breakDown()
		}
		time.Sleep(time.Duration(rand.Int64N(int64(6 * time.Hour))))
		for _, p := range c.procs {
			p.broken.Store(false)
		}
		time.Sleep(8*duration + time.Duration(patience+len(c.procs)+2)*interval)
		c.mu.Lock()
		for name, since := range c.idle {
			if d := time.Since(since); d > 2*interval { // otherwise the shard moves
				t.Errorf("%s has been idle for %v", name, d)
			}
		}
		c.mu.Unlock()
		c.expectBalance(2*trial*duration, "after the outage")
	})
}

// The members that rest get what they offer, if the others have room for all shards.
func TestLimit(t *testing.T) {
	all := []worker{{"a", 1, 0}, {"b", 1, 0}, {"c", 1, 4}}
	for n, c := range []struct {
		offers map[string]int
		shards int
		want   []worker
	}{
		{nil, 9, all},
		{map[string]int{"a": 0}, 9, []worker{{"b", 1, 0}, {"c", 1, 4}}},
		{map[string]int{"a": 1, "c": 9}, 9, []worker{{"a", 1, 1}, {"b", 1, 0}, {"c", 1, 4}}},
		{map[string]int{"a": 0, "b": 1}, 9, all},
		{map[string]int{"a": 0, "b": 1}, 4, []worker{{"b", 1, 1}, {"c", 1, 4}}},
		{map[string]int{"a": 0, "b": 0, "c": 0}, 9, all},
	} {
		if got := limit(all, c.offers, c.shards); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, want %v", n, got, c.want)
		}
	}
}
