package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

// Progress reports that the work is advancing. If [RunOptions.ProgressTimeout] is set, the function that was
// passed to [Run] must never work for longer than this timeout without a call of Progress. The parameter ctx
// must be the context of this function, or a context that is derived from it. If the function itself calls
// Run with this context, a call of Progress in the inner function also counts as progress of the outer
// function. Without a ProgressTimeout, Progress does nothing. Progress is cheap, sends no request, and may be
// called by several goroutines at once.
//
// Call Progress after a step of the work, and not from a timer, because a timer keeps firing while the work
// hangs.
func Progress(ctx context.Context) {
	for p, _ := ctx.Value(progressKey{}).(*progress); p != nil; p = p.outer {
		p.last.Store(int64(p.elapsed()))
	}
}

type progressKey struct{}

// Each call of Run has a value of the type progress. This value contains the time at which the function that
// was passed to Run last called Progress.
type progress struct {
	outer *progress // the progress of the Run whose function has called this Run; nil if there is none
	clock lease.Clock
	began time.Time
	last  atomic.Int64 // the time.Duration from began to the last call of Progress
}

func (p *progress) elapsed() time.Duration { return p.clock.Now().Sub(p.began) }

// watched returns a function that calls f, and ends the term if f makes no progress.
func (r *runner) watched(f func(context.Context, lease.Token) error) func(context.Context, lease.Token) error {
	return func(ctx context.Context, tok lease.Token) error {
		stall := func(why error) { r.session.stall(tok, why) }
		return r.watch(ctx, stall, func(ctx context.Context) error { return f(ctx, tok) })
	}
}

// The method watch calls the function f. If f makes no progress for the ProgressTimeout, the method also
// calls the function stall.
func (r *runner) watch(ctx context.Context, stall func(why error), f func(context.Context) error) error {
	if r.ProgressTimeout == 0 {
		return f(ctx)
	}
	p := &progress{clock: r.clock, began: r.clock.Now()}
	p.outer, _ = ctx.Value(progressKey{}).(*progress)
	returned := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		if p.isOver(r.ProgressTimeout, returned) {
			stall(fmt.Errorf("session.Progress was not called for %v", r.ProgressTimeout))
		}
	})
	defer watch.Wait()
	defer close(returned)
	return f(context.WithValue(ctx, progressKey{}, p))
}

// The method p.isOver returns true as soon as the limit has passed without a call of Progress. If the
// function that was passed to Run returns before that, p.isOver returns false.
func (p *progress) isOver(limit time.Duration, returned <-chan struct{}) bool {
	for {
		left := time.Duration(p.last.Load()) + limit - p.elapsed()
		if left <= 0 {
			return true
		}
		select {
		case <-clock.After(p.clock, left):
		case <-returned:
			return false
		}
	}
}
