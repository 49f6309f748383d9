package shards

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/follow"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/tasks"
)

// acquiresAtOnce limits the requests of a process that gets many shards at once.
const acquiresAtOnce = 32

// A run is a call of Run. It carries out what its machine decides.
type run struct {
	*Group
	machine  *machine            // guarded by mu
	held     map[string]*holding // guarded by mu
	self     *member.Lease       // the lease with which the process announces itself
	source   func(context.Context) ([]string, error)
	workFunc func(ctx context.Context, name string, tok lease.Token) error
	clock    lease.Clock
	permits  chan struct{} // full while acquiresAtOnce acquires are running
	works    sync.WaitGroup
	tasks    tasks.Group // the lists that have not returned yet
	lists    tasks.Count
	naming   tasks.Group // the call of source that has not returned yet
	asking   tasks.Count
}

func (r *run) tell(event func(m *machine, now time.Time) []report) {
	r.mu.Lock()
	reports := event(r.machine, r.clock.Now())
	r.mu.Unlock()
	r.send(reports...)
}

// askNames calls the function names, unless an earlier call of names has not returned yet.
func (r *run) askNames(ctx context.Context) {
	type answer struct {
		names []string
		err   error
	}
	limited, cancel := clock.WithTimeout(ctx, r.clock, r.o.Session.RequestTimeout)
	defer cancel()
	a, returned := tasks.Ask(limited, &r.naming, &r.asking, 1, func(ctx context.Context) (answer, error) {
		names, err := r.source(ctx)
		return answer{slices.Clone(names), err}, nil
	})
	if ctx.Err() != nil {
		return
	}
	if !returned {
		a.err = errors.New("the function names has not returned")
	}
	r.tell(func(m *machine, now time.Time) []report { return m.named(a.names, a.err, now) })
}

// poll updates the lease with which this process announces itself, lists the leases, and begins the moves
// that concern this process. It returns the time from this poll to the next.
func (r *run) poll(ctx context.Context) (interval time.Duration) {
	if ctx.Err() != nil {
		return 0
	}
	var owner string
	r.tell(func(m *machine, now time.Time) (reports []report) {
		owner, reports = m.announce(now, r.ended())
		return reports
	})
	if err := r.self.Show(ctx, owner); err != nil && ctx.Err() == nil {
		r.send(reportFailed("", err, 1))
	}
	began := r.clock.Now()
	list, err := follow.Ask(ctx, r.clock, r.o.Session.Duration, &r.tasks, &r.lists, func(ctx context.Context) (listing, error) {
		return read(r.lister.List(ctx, r.prefix), r.prefix)
	})
	if ctx.Err() != nil {
		return 0
	}
	var do actions
	r.tell(func(m *machine, now time.Time) []report {
		r.seen, do = m.poll(poll{began, now, list, err, r.ended()})
		interval = r.seen.view.Interval
		for _, e := range do.end {
			if h := r.held[e.name]; h != nil {
				h.end(e.cause)
			}
		}
		for _, t := range do.take {
			h := &holding{shard: t}
			h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(ctx))
			r.held[t.name] = h
			r.works.Go(func() { r.hold(h) })
		}
		return do.reports
	})
	for _, b := range do.breaks {
		r.works.Go(func() { r.breakLease(ctx, b) })
	}
	return interval
}

// ended returns the shards that this process may still work on although their lease has ended. The caller
// holds mu.
func (r *run) ended() map[string]bool {
	ended := map[string]bool{}
	for name, h := range r.held {
		if h.session != nil && !h.session.CheckAlive() {
			ended[name] = true
		}
	}
	return ended
}

func (r *run) breakLease(ctx context.Context, b move) {
	ctx, cancel := clock.WithTimeout(ctx, r.clock, r.o.Session.RequestTimeout)
	defer cancel()
	_, err := lease.Break(ctx, r.authority, shardName(r.prefix, b.name), lease.Grace(member.BreakGrace(r.o.Session, r.o.Grace)))
	switch {
	case err == nil:
		r.send(reportBroke(b.name, b.from))
	case !lease.CodeOf(err).Refusal():
		r.send(reportFailed(b.name, err, 1))
	}
}

// The method stop ends all work, releases the lease with which the process announces itself, and waits until
// all work has returned. Without this lease, the other processes no longer count this one, and take its
// shards at their next poll.
func (r *run) stop(ctx context.Context) {
	r.mu.Lock()
	for _, h := range r.held {
		h.end(ErrStopping)
	}
	r.mu.Unlock()
	if err := r.self.End(ctx); err != nil {
		r.send(reportFailed("", err, 1))
	}
	r.works.Wait()
	_ = r.naming.Close(context.WithoutCancel(ctx))
}
