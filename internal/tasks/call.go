package tasks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/clock"
)

var (
	// ErrGone is the error that Answer gets if Do exits its goroutine.
	ErrGone = errors.New("the authority ended the goroutine of the request, so the outcome is not known")

	// ErrOverdue is the error that Answer gets if Do does not return in time.
	ErrOverdue = errors.New("given up, because the authority does not return")
)

// A Request is what Call carries out.
type Request[T any] interface {
	// Do sends the request.
	Do(ctx context.Context) (T, error)

	// Answer gets the results of Do. If Do is given up because it has not returned in time, the error is
	// ErrOverdue, and givenUp is true.
	Answer(answer T, err error, givenUp bool)

	// Returned gets the results of Do when it returns after it was given up.
	Returned(answer T, err error)
}

// Call calls the method Do of a request with a context that has the values of ctx and lasts for d, even if
// ctx ends. On the System clock, a request that waits to be sent may wait as long as its patience lasts: see
// [Wait]. If patience is nil, the request has no more time than d.
// Call calls the method Answer exactly once:
//
//   - If Do returns, with its results.
//   - If Do exits its goroutine, with ErrGone.
//   - If Do is still running when d has passed since its context ended, with ErrOverdue, and true as
//     givenUp. Call then waits for Do, and passes its late results to Returned.
//
// Call returns after its last call of Answer or Returned has ended.
func Call[T any](ctx context.Context, c lease.Clock, d time.Duration, patience *Patience, r Request[T]) {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	g := &call[T]{request: r, err: ErrGone, limit: d}
	ctx = g.watch(ctx, c, patience)
	defer EvenOnExit(func() { // runs even if Do exits the goroutine
		g.stop()
		if g.claim() {
			r.Answer(g.res, g.err, false)
			return
		}
		<-g.gaveUp
		r.Returned(g.res, g.err)
	})
	g.res, g.err = r.Do(ctx)
}

type call[T any] struct {
	request Request[T]
	res     T
	err     error
	limit   time.Duration

	mu       sync.Mutex
	answered bool
	gaveUp   chan struct{} // closed when Answer has returned; nil unless the request was given up
	late     bool          // the context has ended, on the System clock

	deadline deadline    // on the System clock, for which the context itself has no timer
	timer    *time.Timer // on the System clock
	unwatch  func()      // on any other clock
}

// claim reports whether the caller must call Answer, because it was not called yet.
func (g *call[T]) claim() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.answered
	g.answered = true
	return !was
}

// giveUp calls Answer unless Do has returned.
func (g *call[T]) giveUp() {
	g.mu.Lock()
	if g.answered {
		g.mu.Unlock()
		return
	}
	g.answered, g.gaveUp = true, make(chan struct{})
	g.mu.Unlock()
	defer EvenOnExit(func() { close(g.gaveUp) })
	var none T
	g.request.Answer(none, ErrOverdue, true)
}

// watch returns the context of Do, and arranges that giveUp is called when the limit has passed since its
// end. The second limit begins only at the end of the first, so that a process that was stopped for long
// gives Do its time.
func (g *call[T]) watch(ctx context.Context, c lease.Clock, patience *Patience) context.Context {
	if _, ok := c.(clock.System); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.deadline.Context, g.deadline.limit = ctx, g.limit
		g.deadline.at = time.Now().Add(g.limit)
		patience.give(&g.deadline)
		g.timer = time.AfterFunc(g.limit, g.rings)
		return &g.deadline
	}
	ctx, cancel := clock.WithTimeout(ctx, c, g.limit)
	done := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		select {
		case <-clock.After(c, g.limit):
			g.giveUp()
		case <-done:
		}
	})
	g.unwatch = func() {
		unwatch()
		close(done)
		cancel()
	}
	return ctx
}

// rings ends the context, unless it was put off, and gives up one limit after its end.
func (g *call[T]) rings() {
	g.mu.Lock()
	if g.late {
		g.mu.Unlock()
		g.giveUp()
		return
	}
	defer g.mu.Unlock()
	next := min(g.deadline.expire(time.Now()), g.limit) // while the request waits, its end can come one limit from now
	if next == 0 {
		next, g.late = g.limit, true
	}
	if !g.answered {
		g.timer.Reset(next)
	}
}

// stop ends the context and the watch.
func (g *call[T]) stop() {
	if g.timer != nil {
		g.timer.Stop()
		g.deadline.end(context.Canceled)
		return
	}
	g.unwatch()
}
