package shards

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// The causes with which a Group ends the context of work. If the lease is lost or broken, the cause is
// instead a [*lease.LostError]. It matches lease.ErrLost, and lease.ErrBroken once the process knows of a
// break.
var (
	// ErrMoving ends the work of a shard that another process should have.
	ErrMoving = errors.New("shards: the shard moves to another process")

	// ErrRemoved ends the work of a shard that the function names no longer returns.
	ErrRemoved = errors.New("shards: the shard is no longer among the names")

	// ErrStopping ends all work when the context of Run has ended.
	ErrStopping = errors.New("shards: the process stops working on its shards")
)

var (
	errElsewhere = errors.New("shards: the work keeps failing, so another process should try")
	errExits     = errors.New("shards: the work has ended its goroutine")
	errLate      = errors.New("shards: the earlier work of this process on the shard has not ended")
)

// Work works on one shard until its context ends.
type Work = func(ctx context.Context, name string, tok lease.Token) error

// A Group is one process of those that share the shards under a prefix. It is safe for concurrent use.
type Group struct {
	authority lease.Authority
	lister    lease.Lister
	prefix    string
	o         *Options
	decide    func(members []worker, shards []shard) []move // plan, except in tests

	mu      sync.Mutex
	running bool
	view    View // without Members and Shards, which follow from seen and names
	seen    listing
	names   map[string]bool
}

// New returns a Group without sending a request. The leases of a group have names that begin with prefix,
// which usually ends with a slash. New returns a [*lease.FieldError] if an argument or an option is out
// of range, or if a is not a [lease.Lister].
func New(a lease.Authority, prefix string, o *Options) (*Group, error) {
	lister, err := member.CheckNew(a, prefix, memberName("", member.Most), "the processes find each other in the list of leases")
	if err != nil {
		return nil, err
	}
	o, err = o.complete()
	if err != nil {
		return nil, err
	}
	if err := member.SetOwner(a, prefix, o.Session); err != nil {
		return nil, err
	}
	return &Group{authority: a, lister: lister, prefix: prefix, o: o, decide: plan}, nil
}

// Run works on the shards of this process until ctx ends. Before each list it calls names, which returns the
// names of all shards, with a context that ends after Session.RequestTimeout. If names returns an error or
// does not return, Run reports this and keeps the last answer. At its end, Run waits until names has
// returned. Processes may briefly get different names. The work of a name that is missing in an answer ends.
//
// For each shard of this process, Run calls work on a goroutine of its own. Work should return soon after
// its context has ended, with the cause ErrMoving, ErrRemoved or ErrStopping, or with a [*lease.LostError].
// If it returns earlier, Run calls it again after a time that doubles from Session.Duration/32 to
// Session.Duration. After five errors in a row, Run gives the shard up and does not take it for eight
// Durations, so that another process can. If work panics, the lease of its shard is released, and the panic
// ends the process.
//
// When ctx has ended, Run ends all work, waits until it has returned and its leases are released, and
// returns nil. Run returns an error only if it cannot begin: names or work is nil, another call of Run uses
// the Group, a request can never be granted, such as one with a Duration that the store does not grant, or
// the store fails with permanent errors ([lease.Permanent]) for 30 s.
func (g *Group) Run(ctx context.Context, names func(context.Context) ([]string, error), work Work) error {
	switch {
	case names == nil:
		return lease.Missing("Run.names")
	case work == nil:
		return lease.Missing("Run.work")
	}
	g.mu.Lock()
	busy := g.running
	g.running = true
	g.mu.Unlock()
	if busy {
		return &lease.FieldError{Field: "Run", Value: strconv.Quote(g.prefix), Bound: "must not be called while another call uses the Group", Code: lease.ErrOption}
	}
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running, g.view.ID = false, ""
	}()
	random := jitter.Source{Reader: &g.o.Session.Rand}
	drawn := random.ID()
	r := &run{
		Group: g, id: member.ID(drawn, g.prefix), rest: rest{offers: unlimited}, source: names, workFunc: work, clock: g.o.Session.Clock,
		held: map[string]*holding{}, avoid: map[string]*avoided{}, due: map[surplus]time.Time{},
		permits: make(chan struct{}, acquiresAtOnce), interval: g.o.Interval,
	}
	r.label = label(g.o.Session.Owner, r.id)
	r.asked = r.ask(ctx)
	o := *r.o.Session
	o.Owner = r.announcement()
	var err error
	if r.self, err = member.New(r.authority, func(i int) string { return memberName(r.prefix, i) }, drawn, o); err != nil {
		return err
	}
	defer r.stop(ctx)
	if _, err := session.AcquireWait(ctx, r.self, nil); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	for first := true; ctx.Err() == nil; first = false {
		began := r.clock.Now()
		r.look(ctx, first)
		pause := r.interval - r.clock.Now().Sub(began)
		if first { // spread processes that start together
			pause = random.Shorten(g.o.Interval, 1)
		}
		_ = clock.Sleep(ctx, r.clock, max(pause, 0))
	}
	return nil
}

// acquiresAtOnce limits the requests of a process that gets many shards at once.
const acquiresAtOnce = 32

// A run is the state of one call of Run. Only the goroutine of Run uses the fields without a comment.
type run struct {
	*Group
	id, label string
	self      *member.Lease // the lease with which the process announces itself
	knows     digest        // the names that it knows
	asked     error         // of the last call of the function names
	rest      rest
	source    func(context.Context) ([]string, error)
	workFunc  Work
	clock     lease.Clock
	permits   chan struct{} // full while acquiresAtOnce acquires are running; used by all goroutines
	works     sync.WaitGroup

	tasks    tasks.Group // lists that have not returned
	lists    tasks.Count
	asking   chan asked // the answer to a call of source that has not returned; nil if there is none
	interval time.Duration
	order    uint64 // of the shard that was acquired last
	balanced bool
	idle     int  // number of shards that no process may take
	drained  bool // whether an operator drains this process
	failures int  // number of failed lists in a row
	unnamed  int  // number of failed calls of source in a row

	tenures map[string]*tenure    // of the shards in the last list
	unsure  time.Time             // until when other processes may count fewer shards
	due     map[surplus]time.Time // since when another process should give a shard

	heldMu sync.Mutex
	held   map[string]*holding // guarded by heldMu
	avoid  map[string]*avoided // guarded by heldMu
}

// A surplus is an incarnation of a shard that another process should give.
type surplus struct {
	name string
	tok  lease.Token
}

// An avoided is a shard that this process does not take for a while, because it failed.
type avoided struct {
	until time.Time
	count int // of failures in a row
	err   error
}

// adapt makes the interval longer if a list takes more than a twentieth of it.
func (r *run) adapt(took time.Duration) {
	r.interval = max(r.o.Interval, min(20*took, r.o.maxInterval()))
}

// asked is an answer of the function names.
type asked struct {
	names []string
	err   error
}

// ask calls the function names, but not again while an earlier call has not returned.
func (r *run) ask(ctx context.Context) error {
	if r.asking == nil {
		answer := make(chan asked, 1)
		r.asking = answer
		go func() {
			ctx, cancel := clock.WithTimeout(ctx, r.clock, r.o.Session.RequestTimeout)
			defer cancel()
			a := asked{err: errors.New("the function names has ended its goroutine")}
			defer tasks.EvenOnExit(func() { answer <- a })
			names, err := r.source(ctx)
			a = asked{slices.Clone(names), err}
		}()
	}
	var a asked
	select {
	case a = <-r.asking:
		r.asking = nil
	case <-clock.After(r.clock, r.o.Session.RequestTimeout):
		a.err = errors.New("the function names has not returned")
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.err != nil {
		return a.err
	}
	names := make(map[string]bool, len(a.names))
	for _, name := range a.names {
		if err := lease.CheckName(shardName(r.prefix, name)); err == nil {
			names[name] = true
		} else {
			r.reportFailed(name, err, r.fail(name, err, r.o.Interval))
		}
	}
	r.knows = digestOf(names)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = names
	return nil
}

// look lists the leases and begins the moves of this process. The first look moves nothing.
func (r *run) look(ctx context.Context, first bool) {
	if !first {
		r.asked = r.ask(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if r.asked != nil {
		r.unnamed++
		r.reportFailed("", r.asked, r.unnamed)
	} else {
		r.unnamed = 0
	}
	r.judge()
	if err := r.self.Show(ctx, r.announcement()); err != nil && ctx.Err() == nil {
		r.reportFailed("", err, 1)
	}
	began := r.clock.Now()
	seen, err := follow.Ask(ctx, r.clock, r.o.Session.Duration, &r.tasks, &r.lists, r.list)
	r.adapt(r.clock.Now().Sub(began))
	if ctx.Err() != nil {
		return
	}
	for name, err := range seen.bad {
		r.reportFailed(name, err, r.fail(name, err, r.o.Interval))
	}
	r.mu.Lock()
	r.view.Err = errors.Join(r.asked, err)
	r.view.ID, r.view.Interval = r.id, r.interval
	if err == nil {
		delete(seen.offers, r.id) // the list may be older
		if r.rest.offers != unlimited {
			seen.offers[r.id] = r.rest.offers
		}
		r.view.At, r.seen = began, seen
		r.heldMu.Lock()
		for name, a := range r.avoid {
			if s := seen.shards[name]; r.names[name] && (s.ID == "" || s.ID == r.id || r.avoids(name)) {
				s.Name, s.Err = name, a.err
				seen.shards[name] = s
			}
		}
		r.heldMu.Unlock()
	}
	names := r.names
	r.mu.Unlock()
	r.endRemoved(names)
	if err != nil {
		r.failures++
		r.reportFailed("", err, r.failures)
		return
	}
	r.failures = 0
	r.act(ctx, seen, names, first)
}

func (r *run) endRemoved(names map[string]bool) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	for name, h := range r.held {
		if !names[name] {
			h.end(ErrRemoved)
		}
	}
}

// act computes the moves and begins those of this process.
func (r *run) act(ctx context.Context, seen listing, names map[string]bool, first bool) {
	now := r.clock.Now()
	r.reportLate(seen)
	shards, hidden := r.merge(seen, names)
	members := r.members(seen, hidden)
	loads := map[string]int{}
	for _, s := range shards {
		loads[s.holder]++
	}
	open, counted := r.count(members, shards)
	seen.knows[r.id] = r.knows
	moves := planKnown(r.decide, limit(open, seen.offers, len(counted)), seen.knows, r.knows, counted)
	r.noteIdle(tooMany(members, len(shards)), first)
	r.mu.Lock()
	r.view.Moves = len(moves)
	r.mu.Unlock()
	if balanced := len(moves) == 0 && r.idle == 0; balanced != r.balanced && !first {
		if r.balanced = balanced; balanced {
			r.reportBalanced(loads[r.id], len(members))
		}
	}
	due := map[surplus]time.Time{}
	for _, m := range moves {
		s := seen.shards[m.name]
		if m.from == "" && !first {
			r.tenures[m.name].lists++
		}
		switch {
		case first:
		case m.from == r.id:
			r.give(m.name)
		case m.from == "" && m.to == r.id && r.tenures[m.name].lists < settled && len(agreeing(open, seen.knows, r.knows, bucket(m.name))) < len(open):
			// The other processes have perhaps not asked for the names since this one is there.
		case m.from == "" && m.to == r.id:
			r.order++
			r.take(ctx, m.name, r.order)
		case m.from != "":
			key := surplus{m.name, s.Token}
			since, known := r.due[key]
			if !known {
				since = now
			}
			if m.to == r.id && s.State == lease.Leased && now.Sub(since) > r.o.Grace+2*r.interval && now.After(r.unsure) {
				r.breakLease(ctx, m)
				since = now
			}
			due[key] = since
		}
	}
	r.due = due
	if !first && !r.drained {
		r.takeOverdue(ctx, members, seen.knows, shards, loads)
	}
	r.forget(names)
}

// members returns the processes that take part in the plan: all that are not drained. The Max of each is
// lower by the shards that it holds and that are hidden from this process.
func (r *run) members(seen listing, hidden map[string]int) (members []worker) {
	drained := false
	add := func(m worker) {
		if m.max > 0 {
			m.max = max(1, m.max-hidden[m.id])
		}
		members = append(members, m)
	}
	for _, m := range seen.members {
		switch {
		case m.ID == r.id:
			drained = m.Drained
		case !m.Drained:
			add(worker{m.ID, m.Weight, m.Max})
		}
	}
	if !drained {
		add(worker{r.id, r.o.Weight, r.o.Max})
	}
	if drained != r.drained {
		r.drained = drained
		text := "is drained, so it gives its shards up"
		if !drained {
			text = "is not drained any more, so it takes its share"
		}
		r.log(slog.LevelInfo, text, "id", r.id)
	}
	return members
}

// tooMany returns how many of n shards no member may take, because each has its Max.
func tooMany(members []worker, n int) int {
	for _, m := range members {
		if m.max == 0 {
			return 0
		}
		n -= m.max
	}
	return max(0, n)
}

// noteIdle records and reports how many shards are idle because every process has its Max.
func (r *run) noteIdle(idle int, first bool) {
	r.mu.Lock()
	r.view.Idle = idle
	r.mu.Unlock()
	if first || idle == r.idle {
		return
	}
	r.idle = idle
	r.reportIdle(idle)
}

// merge returns the shards that this process knows with their holders, and how many others each process
// holds. This process knows its own better than the list.
func (r *run) merge(seen listing, names map[string]bool) (shards []shard, hidden map[string]int) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	hidden = map[string]int{}
	shards = make([]shard, 0, len(names))
	for name := range names {
		s, h := seen.shards[name], r.held[name]
		switch {
		case h != nil && h.mine():
			shards = append(shards, shard{name, r.id, h.order})
		case s.foreign:
		default:
			shards = append(shards, shard{name, s.ID, s.order})
		}
	}
	for name, s := range seen.shards {
		if !names[name] && !s.foreign && s.ID != "" {
			hidden[s.ID]++
		}
	}
	return shards, hidden
}

func (r *run) take(ctx context.Context, name string, order uint64) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	if r.held[name] != nil || r.avoids(name) {
		return
	}
	h := &holding{name: name, order: order}
	h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
	r.held[name] = h
	r.works.Go(func() { r.hold(h) })
}

// reportLate reports each free shard that this process cannot take, because its earlier work has not ended.
func (r *run) reportLate(seen listing) {
	r.heldMu.Lock()
	var late []*holding
	for name, h := range r.held {
		if !h.mine() && !seen.shards[name].State.Locked() && !r.avoids(name) {
			late = append(late, h)
		}
	}
	r.heldMu.Unlock()
	for _, h := range late {
		h.late++
		r.note(h.name, errLate)
		r.reportFailed(h.name, errLate, h.late)
	}
}

func (r *run) give(name string) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	if h := r.held[name]; h != nil {
		h.end(ErrMoving)
	}
}

// breakLease breaks the lease of a shard that its holder has not given in time.
func (r *run) breakLease(ctx context.Context, m move) {
	r.works.Go(func() {
		ctx, cancel := clock.WithTimeout(ctx, r.clock, r.o.Session.RequestTimeout)
		defer cancel()
		if _, err := lease.Break(ctx, r.authority, shardName(r.prefix, m.name), lease.Grace(member.BreakGrace(r.o.Session, r.o.Grace))); err != nil {
			if !lease.CodeOf(err).Refusal() {
				r.reportFailed(m.name, err, 1)
			}
			return
		}
		r.log(slog.LevelWarn, "broke", "name", m.name, "id", m.from)
		if f := r.o.Trace.Broke; f != nil {
			f(m.name, m.from)
		}
	})
}

// settled is the number of lists after which a process takes a free shard whose name not all processes know.
const settled = 3

// patience is the number of lists after which a process takes a free shard that another should take.
const patience = 4

// takeOverdue takes shards that have been free for long, because the process that should take them has
// crashed or cannot work on them. One process tries after the other. A shard that is taken in this way is
// given last, so that it does not return to where its work fails.
func (r *run) takeOverdue(ctx context.Context, members []worker, knows map[string]digest, shards []shard, loads map[string]int) {
	for _, s := range shards {
		n := r.tenures[s.name].lists
		if s.holder == "" && n >= patience && (worker{max: r.o.Max}).hasRoom(loads[r.id]) && n >= patience+place(s.name, r.id, agreeing(members, knows, r.knows, bucket(s.name)), loads) {
			loads[r.id]++
			r.take(ctx, s.name, 0)
		}
	}
}

// forget drops what is remembered about names that are gone, except recent failures.
func (r *run) forget(names map[string]bool) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	maps.DeleteFunc(r.avoid, func(name string, a *avoided) bool {
		return !names[name] && r.clock.Now().Sub(a.until) > 8*r.o.Session.Duration
	})
}

// stop ends all work, waits for it, and gives up the lease of the process. The lease goes first, so that
// the other processes take the shards at their next list.
func (r *run) stop(ctx context.Context) {
	r.heldMu.Lock()
	held := slices.Collect(maps.Values(r.held))
	r.heldMu.Unlock()
	for _, h := range held {
		h.end(ErrStopping)
	}
	if err := r.self.End(ctx); err != nil {
		r.reportFailed("", err, 1)
	}
	r.works.Wait()
	if r.asking != nil {
		<-r.asking
	}
}
