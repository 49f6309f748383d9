package tasks

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/timing"
)

var (
	// ErrGone is the error that Guard passes to the function answer if the function f exits its
	// goroutine.
	ErrGone = errors.New("the authority ended the goroutine of the request, so the outcome is not known")

	// ErrOverdue is the error that Guard passes to the function answer if the function f does not
	// return in time.
	ErrOverdue = errors.New("given up, because the authority does not return")
)

// A Request is what Guard carries out.
type Request[T any] interface {
	// Do sends the request.
	Do(ctx context.Context) (T, error)

	// Answer gets the results of Do. If Do is given up because it has not returned in time, the error is
	// ErrOverdue, and givenUp is true.
	Answer(answer T, err error, givenUp bool)

	// Returned gets the results of Do when it returns after it was given up.
	Returned(answer T, err error)
}

// Guard calls the method Do of a request with a context that lasts for d, and calls its method Answer
// exactly once:
//
//   - If Do returns, Guard passes its results to Answer.
//   - If Do exits its goroutine, Guard passes ErrGone to Answer.
//   - If Do is still running when d has passed since its context ended, Guard passes ErrOverdue to Answer,
//     and true as givenUp. Guard then waits for Do, and passes its late results to Returned.
//
// Guard returns after its last call of Answer or Returned has ended.
func Guard[T any](ctx context.Context, c lease.Clock, d time.Duration, r Request[T]) {
	g := &guard[T]{request: r, err: ErrGone}
	ctx, cancel := timing.WithTimeout(ctx, c, d)
	g.watch(ctx, c, d)
	defer Finally(func() { // runs even if Do exits the goroutine
		g.stop()
		cancel()
		if g.claim() {
			r.Answer(g.res, g.err, false)
			return
		}
		<-g.gaveUp
		r.Returned(g.res, g.err)
	})
	g.res, g.err = r.Do(ctx)
}

type guard[T any] struct {
	request Request[T]
	res     T
	err     error

	mu       sync.Mutex
	answered bool
	gaveUp   chan struct{} // closed when Answer has returned; nil unless the request was given up
	late     bool          // d has passed once, on the System clock
	timer    *time.Timer   // on the System clock
	unwatch  func()        // on any other clock
}

// claim reports whether the caller must call Answer, because it was not called yet.
func (g *guard[T]) claim() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.answered
	g.answered = true
	return !was
}

// giveUp calls Answer unless Do has returned.
func (g *guard[T]) giveUp() {
	g.mu.Lock()
	if g.answered {
		g.mu.Unlock()
		return
	}
	g.answered, g.gaveUp = true, make(chan struct{})
	g.mu.Unlock()
	defer Finally(func() { close(g.gaveUp) })
	var none T
	g.request.Answer(none, ErrOverdue, true)
}

// watch arranges that giveUp is called when d has passed since the end of ctx. The second d begins only
// at the end of the first, so that a process that was stopped for long gives Do its time.
func (g *guard[T]) watch(ctx context.Context, c lease.Clock, d time.Duration) {
	if _, ok := c.(timing.System); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.timer = time.AfterFunc(d, func() { g.rings(d) })
		return
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-timing.After(c, d):
			g.giveUp()
		case <-done:
		}
	})
	g.unwatch = func() {
		stop()
		close(done)
	}
}

func (g *guard[T]) rings(d time.Duration) {
	g.mu.Lock()
	first := !g.late
	g.late = true
	if first && !g.answered {
		g.timer.Reset(d)
	}
	g.mu.Unlock()
	if !first {
		g.giveUp()
	}
}

func (g *guard[T]) stop() {
	if g.timer != nil {
		g.timer.Stop()
		return
	}
	g.unwatch()
}
