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

// The causes with which a Group ends the context of work. If the lease of the shard is lost or broken, the
// cause is instead a [*lease.LostError], which matches lease.ErrLost. It also matches lease.ErrBroken if the
// process has seen that the lease was broken.
var (
	// ErrMoving means that the work on a shard must stop, because another process should get the shard.
	ErrMoving = errors.New("shards: the shard moves to another process")

	// ErrRemoved means that the work on a shard must stop, because the names of all shards no longer include
	// the name of this shard.
	ErrRemoved = errors.New("shards: the shard is no longer among the names")

	// ErrStopping ends all work when the context of Run has ended.
	ErrStopping = errors.New("shards: the process stops working on its shards")
)

var (
	errElsewhere = errors.New("shards: the work keeps failing, so another process should try")
	errExits     = errors.New("shards: the work has ended its goroutine")
	errLate      = errors.New("shards: the earlier work of this process on the shard has not ended")
)

// A Group divides the shards under a prefix among this process and all other processes that have a Group with
// this prefix. A Group is safe for concurrent use.
type Group struct {
	authority lease.Authority
	lister    lease.Lister
	prefix    string
	o         *Options

	mu      sync.Mutex
	running bool     // guarded by mu
	seen    snapshot // guarded by mu
}

// New returns a Group. It sends no request. The names of the Group's leases begin with prefix, which usually
// ends with a slash. New returns a [*lease.FieldError] if an argument or an option is out of range, or if a
// is not a [lease.Lister].
func New(a lease.Authority, prefix string, o *Options) (*Group, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	lister, err := member.CheckNew(a, prefix, memberName("", member.Most), "the processes find each other in the list of leases", o.Session)
	if err != nil {
		return nil, err
	}
	return &Group{authority: a, lister: lister, prefix: prefix, o: o}, nil
}

// Run takes part in the group until ctx ends. For each shard of this process, Run calls the function work on
// a separate goroutine.
//
// Whenever Run is about to list the leases, it first calls the function that is its second parameter. This
// function must return the names of all shards. The context of this call ends after Session.RequestTimeout.
// If the function returns an error, or does not return in time, Run reports the error and uses the last
// result. If the name of a shard is missing from the result, Run ends the work on that shard. Different
// processes may briefly get different names.
//
// When the context of the work on a shard ends, the work should return soon. The cause of the context is then
// [ErrMoving], [ErrRemoved], [ErrStopping] or a [*lease.LostError]. If the work returns earlier, Run calls
// the function again after a pause. The pause is Session.Duration/32 at first, and doubles each time until it
// is Session.Duration. After five errors in a row, Run releases the shard, so that another process can take
// it, and does not take the shard again for eight times Session.Duration. If there is no other process, Run
// keeps the shard instead. If a call of this function panics, Run releases the lease of its shard, and the
// panic ends the process.
//
// When ctx has ended, Run ends all work, and releases the lease of each shard as soon as its work has
// returned. Run returns nil when all leases are released and all calls of both functions have returned. Run
// only returns an error if it cannot begin:
//
//   - names or work is nil, or another call of Run uses the Group.
//   - The store can never grant a request, for example because it does not support the Duration.
//   - The store fails with permanent errors ([lease.Permanent]) for 30 s.
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
		if first { // so that processes that start together do not list at the same time
			pause = random.Shorten(g.o.Interval, 1)
		}
		_ = clock.Sleep(ctx, r.clock, max(pause, 0))
	}
	return nil
}

// setRunning records whether Run is running, and reports whether that has changed.
func (g *Group) setRunning(on bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed := g.running != on
	if g.running = on; !on {
		g.seen.view.ID = ""
	}
	return changed
}
