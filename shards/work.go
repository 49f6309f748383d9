package shards

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/internal/tasks"
	"github.com/fencedlease/lease/session"
)

// A holding is a shard that this process acquires or works on, until its lease is released.
type holding struct {
	name  string
	order uint64
	ctx   context.Context // ends when this process gives the shard up
	end   context.CancelCauseFunc

	session *session.Session // nil until the lease is acquired; guarded by run.heldMu
	failing bool             // whether the work returned an error the last time; guarded by run.heldMu
	since   time.Time        // when the work began, or returned an error the last time; guarded by run.heldMu
	late    int              // in how many lists the shard was free, and the work had not ended
}

// mine reports whether the lease is held or being acquired. Work can still run after the lease has ended.
func (h *holding) mine() bool { return h.session == nil || h.session.CheckAlive() }

func (r *run) hold(h *holding) {
	defer r.drop(h)
	select {
	case r.permits <- struct{}{}:
	case <-h.ctx.Done():
		return
	}
	acquiring := true
	acquired := func() {
		if acquiring {
			acquiring = false
			<-r.permits
		}
	}
	defer acquired()
	o := *r.o.Session
	o.Owner, o.Logger, o.Trace = shardOwner(r.label, h.order), slog.New(slog.DiscardHandler), nil
	s, err := session.New(r.authority, shardName(r.prefix, h.name), &o)
	if err != nil {
		r.reportFailed(h.name, err, r.fail(h.name, err, r.o.Interval))
		return
	}
	var (
		tok   lease.Token
		cause error
		ended time.Time
		done  bool // whether the end of the work was reported
	)
	defer tasks.EvenOnExit(func() {
		if tok != "" && !done && !errors.Is(cause, lease.ErrLost) { // the work has ended its goroutine
			r.reportGiven(h.name, tok, cause, 0)
		}
		// Close sends the release again if it has failed. After a loss, the store often does not answer.
		if err := member.Close(h.ctx, s, r.o.Session); err != nil && !errors.Is(cause, lease.ErrLost) {
			r.reportFailed(h.name, err, 1)
		}
	})
	ran, err := session.TryRun(h.ctx, member.Member{Session: s}, func(ctx context.Context, t lease.Token) error {
		acquired()
		tok = t
		r.heldMu.Lock()
		h.session, h.since = s, r.clock.Now()
		delete(r.avoid, h.name)
		r.heldMu.Unlock()
		r.reportTaken(h.name, tok)
		over := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(over)
			ended = r.clock.Now()
			if cause = context.Cause(ctx); errors.Is(cause, lease.ErrLost) {
				if errors.Is(cause, lease.ErrNoProgress) {
					r.fail(h.name, cause, 8*r.o.Session.Duration)
					r.strike()
				} else {
					r.note(h.name, cause)
				}
				r.reportLost(h.name, tok, cause)
			}
		})
		returned := false
		defer tasks.EvenOnExit(func() {
			if returned {
				return
			}
			if stop() {
				cause = errExits
				r.reportFailed(h.name, errExits, r.fail(h.name, errExits, r.o.Session.Duration))
			} else {
				<-over
			}
		})
		err := r.work(ctx, h, tok)
		returned = true
		if stop() {
			cause, ended = err, r.clock.Now() // the work has given up
		} else {
			<-over
		}
		return nil
	}, &session.RunOptions{ReleaseTimeout: 2 * r.o.Session.RequestTimeout, Logger: o.Logger, ProgressTimeout: r.o.ProgressTimeout})
	done = true
	switch {
	case ran && !errors.Is(cause, lease.ErrLost):
		r.reportGiven(h.name, tok, cause, r.clock.Now().Sub(ended))
	case !ran && err != nil && h.ctx.Err() == nil:
		r.reportFailed(h.name, err, r.fail(h.name, err, r.o.Interval))
	}
}

func (r *run) drop(h *holding) {
	h.end(context.Canceled)
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	delete(r.held, h.name)
}

// mostFailures is the number of errors in a row after which another process should try.
const mostFailures = 5

// work calls the user's function until ctx ends. It returns an error if the function keeps failing.
func (r *run) work(ctx context.Context, h *holding, tok lease.Token) error {
	duration := r.o.Session.Duration
	pause := duration / 32
	for failures := 0; ; {
		began := r.clock.Now()
		err := r.workFunc(ctx, h.name, tok)
		if ctx.Err() != nil {
			return nil
		}
		if r.clock.Now().Sub(began) >= duration {
			failures, pause = 0, duration/32
		}
		if err == nil {
			failures = 0
		} else {
			failures++
			r.reportFailed(h.name, err, failures)
		}
		gaveUp := failures >= mostFailures && r.hasOthers(true)
		r.heldMu.Lock()
		if h.failing = err != nil; h.failing {
			h.since = r.clock.Now()
		}
		r.heldMu.Unlock()
		if gaveUp {
			r.strike()
			r.fail(h.name, err, 8*duration)
			return errElsewhere
		}
		if !r.pause(ctx, max(pause, time.Millisecond)) {
			return nil
		}
		pause = min(2*pause, duration)
	}
}

// pause waits for d, which counts as progress, and reports whether ctx still lasts.
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

// strike counts a shard that was given up because its work does not go well.
func (r *run) strike() {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	r.rest.strikes++
}

// hasOthers reports whether there are other processes, and without resting, whether one of them does not rest.
func (r *run) hasOthers(resting bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.seen.members {
		if _, rests := r.seen.offers[m.ID]; m.ID != r.id && (resting || !rests) {
			return true
		}
	}
	return false
}

// note makes err the Err of a shard that this process may take at once.
func (r *run) note(name string, err error) {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	r.avoid[name] = &avoided{until: r.clock.Now(), err: err}
}

// fail notes that a shard has failed, and returns the number of failures in a row. The process does not
// take the shard for the pause, which doubles with each failure, up to eight Durations.
func (r *run) fail(name string, err error, pause time.Duration) int {
	r.heldMu.Lock()
	defer r.heldMu.Unlock()
	a := r.avoid[name]
	if a == nil {
		a = new(avoided)
		r.avoid[name] = a
	}
	a.count++
	a.err = err
	longest := 8 * r.o.Session.Duration
	for range a.count - 1 {
		if pause = 2 * pause; pause >= longest {
			break
		}
	}
	a.until = r.clock.Now().Add(min(pause, longest))
	return a.count
}

// avoids reports whether the process must not take the shard now. The caller holds heldMu.
func (r *run) avoids(name string) bool {
	a := r.avoid[name]
	return a != nil && r.clock.Now().Before(a.until)
}
