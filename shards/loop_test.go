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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
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

// settle starts n processes, and waits until they share the shards.
func (c *town) settle(n int) []*process {
	c.t.Helper()
	for range n {
		c.start(0, nil)
	}
	c.expectBalance(2*interval+time.Second, "at the start")
	return slices.Clone(c.procs)
}

// began returns how often work began in the time d.
func (c *town) beganIn(d time.Duration) int {
	before := c.works()
	time.Sleep(d)
	return c.works() - before
}

// If the work does not return within Grace, the lease is broken. The holder has time to notice the break
// before another process works with a newer token.
func TestHungWork(t *testing.T) {
	inTown(t, 10, func(c *town) {
		c.settle(1)[0].stop.Store(int64(time.Hour))
		began, p := time.Since(c.began), c.start(0, nil)
		c.expectBalance(2*duration+6*interval, "after the grace")
		broke, taken := p.times("broke"), p.times("taken")
		if len(broke) != 5 || slices.Min(broke) < began+duration+2*interval || slices.Min(taken) < slices.Max(broke)+duration/2 {
			t.Errorf("the second process starts at %v, breaks at %v, and takes at %v", began, broke, taken)
		}
		c.mu.Lock()
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
		procs := c.settle(2)
		for name, ls := range c.at {
			if ls[0].p == procs[0] {
				procs[0].hangs.Store(name)
			}
		}
		procs[0].leave()
		time.Sleep(interval + time.Second)
		if n := procs[1].load(); n != 9 {
			t.Errorf("the other works on %d", n)
		}
		time.Sleep(time.Hour) // Run waits for the work
		select {
		case <-procs[0].ended:
		default:
			t.Error("Run has not returned")
		}
	})
}

// A call of names that fails, hangs or ends its goroutine is in the View, and the work goes on. The work of a name
// that is gone ends, and all work when Run ends, which waits for names. Then no lease is locked.
func TestNames(t *testing.T) {
	inTown(t, 3, func(c *town) {
		p := c.settle(1)[0]
		if ms := p.group.View().Members; len(ms) != 1 || !strings.Contains(ms[0].Owner, fmt.Sprintf("_%d_", os.Getpid())) {
			t.Errorf("the members are %+v, and the default Owner should name this process", ms)
		}
		next := func(when string, wait time.Duration, fails bool, works int, answer func() error) {
			t.Helper()
			c.mu.Lock()
			c.answer = answer
			c.mu.Unlock()
			time.Sleep(wait)
			if v := p.group.View(); p.load() != works || (v.Err != nil) != fails || v.Interval != interval {
				t.Errorf("%s: works on %d, want %d; the View has %v and %v", when, p.load(), works, v.Err, v.Interval)
			}
		}
		running := atomic.Bool{}
		hang := func() error {
			running.Store(true)
			defer running.Store(false)
			time.Sleep(time.Minute)
			return nil
		}
		next("names fails", 20*time.Second, true, 3, func() error { return errors.New("no names") })
		next("names ends its goroutine", 20*time.Second, true, 3, func() error { runtime.Goexit(); return nil })
		next("names hangs", 20*time.Second, true, 3, hang)
		c.mu.Lock()
		c.names = []string{"0001", "new", ""} // the empty name is a valid one: "t/shards/"
		c.mu.Unlock()
		next("other names", 2*time.Minute, false, 3, nil)
		if n := len(p.times(ErrRemoved.Error())); n != 2 {
			t.Errorf("the work of %d names has ended, and 2 were removed", n)
		}
		if err := p.group.Run(t.Context(), p.listNames, p.work); lease.CodeOf(err) != lease.ErrOption {
			t.Errorf("a second Run: %v", err)
		}
		next("names hangs at the end", 20*time.Second, true, 3, hang)
		p.leave()
		if <-p.ended; p.group.View().ID != "" || running.Load() {
			t.Errorf("the View has the ID %q, and names runs: %v", p.group.View().ID, running.Load())
		}
		for e := range c.store.List(t.Context(), "t/") {
			if e.Record.State.Locked() {
				t.Errorf("%s is locked", e.Name)
			}
		}
	})
}

// The store refuses many names for a time. The others are worked, and nothing moves. Then all are worked.
func TestRefusedNames(t *testing.T) {
	inTown(t, 2+rand.IntN(9), func(c *town) {
		good := len(c.names)
		for i := range acquiresAtOnce + 8 {
			c.names = append(c.names, fmt.Sprint("bad", i))
		}
		c.refuses.Store(true)
		c.start(0, nil)
		c.start(0, nil)
		time.Sleep(20 * duration)
		began := c.beganIn(time.Hour)
		if worked := len(c.names) - c.world().loads()[""]; worked != good || began > 0 {
			t.Errorf("%d of %d shards are worked, and %d moved in an hour", worked, good, began)
		}
		c.refuses.Store(false)
		c.expectBalance(20*duration, "when the store grants all")
	})
}

func TestNewRefuses(t *testing.T) {
	a := memory.New(nil).Authority()
	for name, o := range map[string]*Options{
		"Options.Interval": {Interval: 5}, "Options.Grace": {Grace: 5}, "Options.Weight": {Weight: -1}, "Options.Max": {Max: -1},
		"Options.Session.Duration":   {Session: &session.Options{Duration: lease.Infinite}},
		"Options.Session.TakeOver":   {Session: &session.Options{TakeOver: true, Owner: "x"}},
		"Options.Session.RetryDelay": {Session: &session.Options{RetryDelay: -1}},
	} {
		_, err := New(a, "p/", o)
		if e := (*lease.FieldError)(nil); !errors.As(err, &e) || e.Field != name || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err) // an error about a default would name a field that was not given
		}
	}
	for _, bad := range []struct {
		a      lease.Authority
		prefix string
		code   lease.Code
	}{
		{struct{ lease.Authority }{a}, "p/", lease.ErrOption}, // cannot list
		{nil, "p/", lease.ErrOption}, {a, "", lease.ErrName}, {a, strings.Repeat("p", 1010), lease.ErrName},
	} {
		if _, err := New(bad.a, bad.prefix, nil); lease.CodeOf(err) != bad.code {
			t.Errorf("%+v: %v", bad, err)
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
		noNames := func(context.Context) ([]string, error) { return nil, nil }
		if err := g.Run(t.Context(), noNames, func(context.Context, string, lease.Token) error { return nil }); lease.CodeOf(err) != lease.ErrDuration {
			t.Errorf("the store grants at most 1s: %v", err)
		}
	})
}

// A panic of the work releases the lease of its shard and ends the process.
func TestPanic(t *testing.T) {
	if os.Getenv("SHARDS_PANIC") != "" {
		store := memory.New(nil)
		a := leasefault.Script(store.Authority(), leasefault.Always(lease.ActionRelease, func(_ context.Context, c *leasefault.Call) error {
			fmt.Println("release", c.Name)
			return nil
		}))
		g, err := New(a, "p/", &Options{Interval: 10 * time.Millisecond})
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

// The hooks and the records tell of each shard once.
func TestReports(t *testing.T) {
	inTown(t, 2, func(c *town) {
		var log strings.Builder
		p := c.start(0, func(o *Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
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
		<-p.ended
		for line := range strings.Lines(log.String()) {
			level, rest, _ := strings.Cut(line[strings.Index(line, "level="):], " msg=")
			what, _, _ := strings.Cut(rest, " name=")
			p.note(level + " " + what)
		}
		got := map[string]int{}
		for what, times := range p.events {
			got[what] = len(times)
		}
		maps.DeleteFunc(got, func(what string, _ int) bool {
			return strings.Contains(what, "failed") || strings.Contains(what, "balanced\"")
		})
		want := map[string]int{
			"taken": 5, "given": 3, ErrMoving.Error(): 1, ErrStopping.Error(): 2, "lost": 2, lease.ErrStopWindow.Error(): 2,
			"balanced 2 of 1": 3, "balanced 1 of 2": 1,
			`level=DEBUG "shards: taken"`: 5, `level=DEBUG "shards: given"`: 3, `level=WARN "shards: lost"`: 2,
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Work that ends its goroutine has failed, and is reported as taken and given.
func TestGoexit(t *testing.T) {
	inTown(t, 1, func(c *town) {
		p := c.start(0, nil)
		p.exits.Store(true)
		time.Sleep(time.Hour)
		failed, taken, given := len(p.times("failed")), len(p.times("taken")), len(p.times("given"))
		if v := p.group.View(); taken != failed || given != failed || failed < 100 || failed > 120 || v.Shards[0].Err != errExits {
			t.Errorf("of the works in an hour, %d were reported as failed, %d as taken and %d as given; the View has %+v", failed, taken, given, v.Shards)
		}
	})
}

// Work that makes no progress is ended, and its shards go to another process. The pause after work that has returned
// counts as progress, even if it is longer than the ProgressTimeout.
func TestProgressTimeout(t *testing.T) {
	inTown(t, 20, func(c *town) {
		p := c.start(0, func(o *Options) { o.ProgressTimeout = duration / 3 })
		p.fails.Store("*")
		time.Sleep(time.Hour)
		if lost, failed := len(p.times("lost")), len(p.times("failed")); lost > 0 || failed < 100 {
			t.Errorf("the work failed %d times, and %d shards were lost", failed, lost)
		}
		p.fails.Store("") // the work never calls session.Progress
		healthy := c.start(0, nil)
		time.Sleep(13 * time.Minute)
		if n := healthy.load(); n < 19 {
			t.Errorf("the healthy process works on %d of 20", n)
		}
	})
}

// Two groups whose prefixes contain one another do not touch each other's leases.
func TestNestedPrefixes(t *testing.T) {
	for _, inner := range []string{"t/shards/", "t/members/", "t/drain/", "t/shards/x/"} {
		inTown(t, 10, func(c *town) {
			nested := newTown(t, 10, duration)
			nested.store, nested.prefix = c.store, inner
			defer nested.end()
			for range 2 {
				c.start(0, nil)
				nested.start(0, nil)
			}
			time.Sleep(time.Minute)
			outer, began, broke := c.procs[0], c.beganIn(30*time.Minute)+nested.beganIn(time.Minute), 0
			for _, p := range append(nested.procs, c.procs...) {
				broke += len(p.times("broke"))
			}
			if s := c.unbalanced() + nested.unbalanced(); s != "" || broke > 0 || began > 0 {
				t.Errorf("%s: %s; %d leases broken, %d shards moved", inner, s, broke, began)
			}
			if n := len(outer.group.View().Members); n != 2 {
				t.Errorf("%s: the outer group has %d members", inner, n)
			}
			outer.group.mu.Lock()
			defer outer.group.mu.Unlock()
			if strays := outer.group.seen.list.strays; len(strays) > 0 {
				t.Errorf("%s: the outer group takes %q for drain leases", inner, strays)
			}
		})
	}
}
