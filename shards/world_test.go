package shards

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A town is a group of simulated processes over one memory store, in a synctest bubble.
type town struct {
	t       testing.TB
	store   *memory.Store
	prefix  string
	options Options
	began   time.Time
	refuses atomic.Bool // the store refuses names that begin with "bad"

	mu      sync.Mutex
	names   []string
	answer  func() error // what the function names does before it returns the names; nil if nothing
	procs   []*process   // those that were not stopped
	at      map[string][]*labor
	tokens  map[string]lease.Token
	idle    map[string]time.Time // since when no process works on a shard
	longest time.Duration        // the longest idle time
	moves   int                  // how often a work began

	requests, lists atomic.Int64
}

// A labor is a running call of work.
type labor struct {
	p    *process
	ctx  context.Context
	fail chan struct{} // closed to make the work return an error
}

type process struct {
	town   *town
	group  *Group
	clock  *leasefault.Clock
	cancel context.CancelFunc
	ended  chan struct{}
	die    chan struct{}
	cut    atomic.Bool
	paused atomic.Bool
	events map[string][]time.Duration // the times at which hooks of Trace were called; guarded by town.mu
	stop   atomic.Int64               // how long the work takes to stop
	hangs  atomic.Value               // the name of the shard whose work takes an hour to stop
	fails  atomic.Value               // the name of the shard whose work returns errors, or "*" for all
	exits  atomic.Bool                // all work ends its goroutine
}

func newTown(t testing.TB, shards int, duration time.Duration) *town {
	c := &town{t: t, store: memory.New(nil), prefix: "t/", began: time.Now(),
		at: map[string][]*labor{}, tokens: map[string]lease.Token{}, idle: map[string]time.Time{}}
	c.options = Options{Session: &session.Options{Duration: duration, Logger: slog.New(slog.DiscardHandler)}, Logger: slog.New(slog.DiscardHandler)}
	for i := range shards {
		c.names = append(c.names, fmt.Sprintf("%04d", i))
	}
	return c
}

func (c *town) fault(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%v: "+format, append([]any{time.Since(c.began)}, args...)...)
}

// start starts a process. If drift is not 0, its clock is wrong by that part.
func (c *town) start(drift float64, change func(*Options)) *process {
	p := &process{town: c, ended: make(chan struct{}), die: make(chan struct{}), events: map[string][]time.Duration{}}
	o := c.options
	o.Trace = &Trace{
		Taken: func(string, lease.Token) { p.note("taken") },
		Given: func(_ string, _ lease.Token, cause error, _ time.Duration) {
			p.note("given")
			p.note(fmt.Sprint(cause))
		},
		Lost:     func(_ string, _ lease.Token, err error) { p.note("lost"); p.note(lease.CodeOf(err).Error()) },
		Failed:   func(string, error) { p.note("failed") },
		Broke:    func(string, string) { p.note("broke") },
		Balanced: func(mine, members int) { p.note(fmt.Sprintf("balanced %d of %d", mine, members)) },
		Idle:     func(n int) { p.note(fmt.Sprintf("%d idle", n)) },
	}
	s := *o.Session
	o.Session = &s
	if drift != 0 {
		p.clock = leasefault.NewClock()
		p.clock.Rate(1 + drift)
		s.Clock = p.clock
	}
	if change != nil {
		change(&o)
	}
	g, err := New(wire{p}, c.prefix, &o)
	if err != nil {
		c.t.Fatal(err)
	}
	p.group = g
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	c.mu.Lock()
	c.procs = append(c.procs, p)
	c.mu.Unlock()
	go func() {
		defer close(p.ended)
		if err := g.Run(ctx, p.listNames, p.work); err != nil {
			c.fault("Run: %v", err)
		}
	}()
	return p
}

// note remembers the time of an event.
func (p *process) note(event string) {
	p.town.mu.Lock()
	defer p.town.mu.Unlock()
	p.events[event] = append(p.events[event], time.Since(p.town.began))
}

// times returns when an event was noted.
func (p *process) times(event string) []time.Duration {
	p.town.mu.Lock()
	defer p.town.mu.Unlock()
	return slices.Clone(p.events[event])
}

func (p *process) listNames(context.Context) ([]string, error) {
	p.town.mu.Lock()
	names, answer := slices.Clone(p.town.names), p.town.answer
	p.town.mu.Unlock()
	if answer != nil {
		return names, answer()
	}
	return names, nil
}

// wire is the connection of a process to the store.
type wire struct{ p *process }

func (w wire) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if w.p.cut.Load() {
		<-ctx.Done()
		return lease.Result{}, ctx.Err()
	}
	if w.p.town.refuses.Load() && strings.HasPrefix(name, "t/shards/bad") {
		return lease.Result{}, errors.New("the store refuses this name")
	}
	w.p.town.requests.Add(1)
	return w.p.town.store.Authority().Do(ctx, name, req)
}

func (w wire) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		if w.p.cut.Load() {
			<-ctx.Done()
			yield(lease.Entry{}, ctx.Err())
			return
		}
		w.p.town.lists.Add(1)
		w.p.town.store.List(ctx, prefix)(yield)
	}
}

var errWork = errors.New("the work fails")

// work is the work of a shard. It checks that no other process works on it.
func (p *process) work(ctx context.Context, name string, tok lease.Token) error {
	if fails := p.fails.Load(); fails == "*" || fails == name {
		return errWork
	}
	if p.exits.Load() {
		runtime.Goexit()
	}
	c := p.town
	c.mu.Lock()
	for _, l := range c.at[name] {
		if l.ctx.Err() == nil && !l.p.paused.Load() {
			c.fault("two work on %s", name)
		}
	}
	if c.tokens[name].Compare(tok) > 0 {
		c.fault("token %s of %s is older than %s", tok, name, c.tokens[name])
	}
	c.tokens[name] = tok
	c.moves++
	if since, ok := c.idle[name]; ok {
		c.longest = max(c.longest, time.Since(since))
		delete(c.idle, name)
	}
	live := 1
	for _, ls := range c.at {
		live += len(slices.DeleteFunc(slices.Clone(ls), func(l *labor) bool { return l.p != p || l.ctx.Err() != nil }))
	}
	if most := p.group.o.Max; most > 0 && live > most {
		c.fault("%d works run in a process, and its Max is %d", live, most)
	}
	l := &labor{p, ctx, make(chan struct{})}
	c.at[name] = append(c.at[name], l)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.at[name] = slices.DeleteFunc(c.at[name], func(o *labor) bool { return o == l })
		if len(c.at[name]) == 0 {
			c.idle[name] = time.Now()
		}
	}()
	select {
	case <-p.die:
		return nil
	case <-l.fail:
		return errWork
	case <-ctx.Done():
	}
	stop := time.Duration(p.stop.Load())
	if p.hangs.Load() == name {
		stop = time.Hour
	}
	select {
	case <-p.die:
	case <-time.After(stop):
	}
	return context.Cause(ctx)
}

// failOne makes the work of one shard of p fail, now and later.
func (p *process) failOne() {
	p.town.mu.Lock()
	defer p.town.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.town.at)) {
		if ls := p.town.at[name]; len(ls) > 0 && ls[0].p == p {
			p.fails.Store(name)
			close(ls[0].fail)
			return
		}
	}
}

func (p *process) leave() {
	p.cancel()
	p.town.mu.Lock()
	defer p.town.mu.Unlock()
	p.town.procs = slices.DeleteFunc(p.town.procs, func(o *process) bool { return o == p })
}

// crash stops a process at once. None of its requests reaches the store any more.
func (p *process) crash() {
	p.cut.Store(true)
	close(p.die)
	p.leave()
}

func (p *process) id() string { return fmt.Sprintf("%p", p) }

func (c *town) end() {
	c.mu.Lock()
	procs := slices.Clone(c.procs)
	c.mu.Unlock()
	for _, p := range procs {
		p.cut.Store(false)
		p.stop.Store(0)
		if p.clock != nil {
			p.clock.Resume()
		}
		p.leave()
	}
	for _, p := range procs {
		<-p.ended
	}
	time.Sleep(4 * c.options.Session.Duration) // crashed processes give up their requests
}

// world returns the processes, and which of them works on each shard.
func (c *town) world() (w world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.procs {
		w.members = append(w.members, aMember(p.id(), p.group.o.Weight, p.group.o.Max))
	}
	for _, name := range c.names {
		s := shard{name: name}
		for _, l := range c.at[name] {
			if l.ctx.Err() == nil {
				s.holder = l.p.id()
			}
		}
		w.shards = append(w.shards, s)
	}
	return w
}

// load returns the number of shards on which p works.
func (p *process) load() int { return p.town.world().loads()[p.id()] }

// unbalanced returns how the loads differ from the fair shares, or "" if they do not and no shard is idle.
func (c *town) unbalanced() string {
	w := c.world()
	loads := w.loads()
	want := shares(w.members, loads, len(w.shards))
	for id, n := range want {
		if loads[id] != n {
			return fmt.Sprintf("%d of %d shards are idle, the loads are %v, and want %v", loads[""], len(w.shards), loads, want)
		}
	}
	return ""
}

func (c *town) expectBalance(d time.Duration, when string) {
	c.t.Helper()
	time.Sleep(d)
	if s := c.unbalanced(); s != "" {
		c.fault("%s: %s", when, s)
	}
}
