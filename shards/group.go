package shards

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/internal/member"
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

// A Group is this process in the group of processes that share the shards under a prefix. It is safe for
// concurrent use.
type Group struct {
	authority lease.Authority
	lister    lease.Lister
	prefix    string
	o         *Options

	mu      sync.Mutex
	running bool     // guarded by mu
	seen    snapshot // guarded by mu
}

// New returns a Group without sending a request. The names of its leases begin with prefix, which usually
// ends with a slash. New returns a [*lease.FieldError] if an argument or an option is out of range, or if a
// is not a [lease.Lister].
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
	return &Group{authority: a, lister: lister, prefix: prefix, o: o}, nil
}

// Run works on the shards of this process until ctx ends. For each of them, it calls work on a goroutine of
// its own.
//
// Before each list, Run calls names, which returns the names of all shards. The context of names ends after
// Session.RequestTimeout. If names returns an error or does not return, Run reports this and uses the last
// answer. If a name is missing in an answer, the work of that shard ends. Processes may briefly get
// different names.
//
// work should return soon after its context has ended, with the cause [ErrMoving], [ErrRemoved] or
// [ErrStopping], or with a [*lease.LostError]. If work returns before its context has ended, Run calls it
// again after a pause. The pause is Session.Duration/32 at first, and doubles each time until it is
// Session.Duration. After five errors in a row, Run releases the shard and does not take it again for eight
// times Session.Duration, so that another process can. If work panics, Run releases the lease of its shard,
// and the panic ends the process.
//
// When ctx has ended, Run ends all work, waits until all work and names have returned and the leases are
// released, and returns nil. It returns an error only if it cannot begin: names or work is nil, another
// call of Run uses the Group, a request can never be granted, for example because the store does not grant
// the Duration, or the store fails with permanent errors ([lease.Permanent]) for 30 s.
func (g *Group) Run(ctx context.Context, names func(context.Context) ([]string, error), work func(ctx context.Context, name string, tok lease.Token) error) error {
	switch {
	case names == nil:
		return fields.Missing("Run.names")
	case work == nil:
		return fields.Missing("Run.work")
	}
	if !g.setRunning(true) {
		return &lease.FieldError{Field: "Run", Value: strconv.Quote(g.prefix), Bound: "must not be called while another call uses the Group", Code: lease.ErrOption}
	}
	defer g.setRunning(false)
	random := jitter.Source{Reader: &g.o.Session.Rand}
	drawn := random.ID()
	r := &run{Group: g, source: names, workFunc: work, clock: g.o.Session.Clock, held: map[string]*holding{}, permits: make(chan struct{}, acquiresAtOnce)}
	r.machine = newMachine(g.o, g.prefix, member.ID(drawn, g.prefix))
	r.askNames(ctx)
	o := *g.o.Session
	o.Owner, _ = r.machine.announce(r.clock.Now(), nil)
	var err error
	if r.self, err = member.New(g.authority, func(i int) string { return memberName(g.prefix, i) }, drawn, o); err != nil {
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
		if !first {
			r.askNames(ctx)
		}
		interval := r.poll(ctx)
		pause := interval - r.clock.Now().Sub(began)
		if first { // spread processes that start together
			pause = random.Shorten(g.o.Interval, 1)
		}
		_ = clock.Sleep(ctx, r.clock, max(pause, 0))
	}
	return nil
}

// setRunning notes that Run begins or ends, and reports whether this changes anything.
func (g *Group) setRunning(on bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed := g.running != on
	if g.running = on; !on {
		g.seen.view.ID = ""
	}
	return changed
}
