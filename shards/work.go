package shards

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// The type holding describes a shard that this process acquires or works on. A value of this type exists
// until the process has released the lease of the shard.
type holding struct {
	shard
	ctx     context.Context // ends when this process should release the shard
	end     context.CancelCauseFunc
	session *session.Session // nil until the lease is acquired; guarded by run.mu
}

func (r *run) hold(h *holding) {
	defer r.drop(h)
	select {
	case r.permits <- struct{}{}:
	case <-h.ctx.Done():
		return
	}
	acquired := sync.OnceFunc(func() { <-r.permits })
	defer acquired()
	o := *r.o.Session
	o.Owner, o.Logger, o.Trace = member.ShardLease.Owner(label(o.Owner, r.machine.id), h.order), slog.New(slog.DiscardHandler), nil
	s, err := session.New(r.authority, shardName(r.prefix, h.name), &o)
	if err != nil {
		r.failed(h, err, r.o.Interval)
		return
	}
	var (
		tok   lease.Token // of the grant, if there was one
		cause error       // why the work has ended
		ended time.Time   // when the context of the work has ended, or the work itself
	)
	defer tasks.EvenOnExit(func() {
		lost := errors.Is(cause, lease.ErrLost)
		if tok != "" && !lost {
			r.send(reportGiven(h.name, tok, cause, r.clock.Now().Sub(ended)))
		}
		// Close sends a release that has failed again. After a loss of the lease, the error of Close says
		// little, because the store often does not answer.
		if err := member.Close(h.ctx, s, r.o.Session); err != nil && !lost {
			r.send(reportFailed(h.name, err, 1))
		}
	})
	_, err = session.TryRun(h.ctx, member.Member{Session: s}, func(ctx context.Context, t lease.Token) error {
		acquired()
		tok = t
		r.tell(func(m *machine, now time.Time) []report {
			h.session = s
			m.workBegan(h.name, now)
			return []report{reportTaken(h.name, tok)}
		})
		over := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(over)
			ended = r.clock.Now()
			if cause = context.Cause(ctx); errors.Is(cause, lease.ErrLost) {
				r.tell(func(m *machine, now time.Time) []report {
					m.workLost(h.name, cause, now)
					return []report{reportLost(h.name, tok, cause)}
				})
			}
		})
		err := errExits // unless the work returns
		defer tasks.EvenOnExit(func() {
			if !stop() {
				<-over
				return
			}
			if cause, ended = err, r.clock.Now(); err == errExits {
				r.failed(h, err, r.o.Session.Duration)
			}
		})
		err = r.work(ctx, h, tok)
		return nil
	}, &session.RunOptions{ReleaseTimeout: 2 * r.o.Session.RequestTimeout, Logger: o.Logger, ProgressTimeout: r.o.ProgressTimeout})
	if tok == "" && err != nil && h.ctx.Err() == nil {
		r.failed(h, err, r.o.Interval)
	}
}

func (r *run) drop(h *holding) {
	h.end(context.Canceled)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, h.name)
	r.machine.dropped(h.name)
}

// failed reports an error of a shard. This process then does not take the shard for the pause or longer.
func (r *run) failed(h *holding, err error, pause time.Duration) {
	r.tell(func(m *machine, now time.Time) []report { return []report{m.failed(h.name, err, pause, now)} })
}

// work calls the user's function until ctx ends. If the function keeps failing, work returns an error.
func (r *run) work(ctx context.Context, h *holding, tok lease.Token) error {
	for {
		began := r.clock.Now()
		err := r.workFunc(ctx, h.name, tok)
		if ctx.Err() != nil {
			return nil
		}
		var pause time.Duration
		var again bool
		r.tell(func(m *machine, now time.Time) (reports []report) {
			pause, again, reports = m.workReturned(h.name, began, now, err)
			return reports
		})
		if !again {
			return errElsewhere
		}
		if !r.pause(ctx, pause) {
			return nil
		}
	}
}

// pause waits for d, and reports whether ctx has not ended. It also calls [session.Progress] at intervals, so
// that the Session does not consider the paused work as hung.
func (r *run) pause(ctx context.Context, d time.Duration) bool {
	step := d
	if most := r.o.ProgressTimeout / 2; most > 0 {
		step = min(d, most)
	}
	for ; d > 0; d -= step {
		session.Progress(ctx)
		if clock.Sleep(ctx, r.clock, min(step, d)) != nil {
			return false
		}
	}
	session.Progress(ctx)
	return true
}
