package session

import (
	"context"
	"slices"
	"time"

	"github.com/fencedlease/lease/internal/holder"
)

// A pendingCall is a method call that has no outcome yet.
type pendingCall struct {
	ctx    context.Context
	caller caller
	number uint64 // counts from 1
}

// A caller receives the outcome of its call. The method answer is called once, and must not block.
type caller interface{ answer(holder.Outcome) }

// A function of the type input passes a call to the state machine. Its parameter n is the number of the call.
type input func(m *holder.Machine, n uint64)

// begin passes a new call to the state machine, and returns the number of the call.
func (s *Session) begin(c pendingCall, input input) (n uint64) {
	s.step(func(m *holder.Machine, _ time.Time) {
		s.lastCall++
		n, c.number = s.lastCall, s.lastCall
		s.calls = append(s.calls, c)
		input(m, n)
	})
	return n
}

// callAt returns the index in s.calls of the call with the number n, or -1 if it already has an outcome.
func (s *Session) callAt(n uint64) int {
	return slices.IndexFunc(s.calls, func(c pendingCall) bool { return c.number == n })
}

func (s *Session) cancel(n uint64, err error) {
	s.step(func(m *holder.Machine, _ time.Time) { m.Cancel(n, err) })
}

func (s *Session) call(ctx context.Context, input input) *blockedCall {
	c := &blockedCall{s: s, done: make(chan struct{})}
	c.number = s.begin(pendingCall{ctx: ctx, caller: c}, input)
	return c
}

// A blockedCall is a call whose caller waits for the outcome.
type blockedCall struct {
	s       *Session
	number  uint64
	outcome holder.Outcome // valid once done is closed
	done    chan struct{}
}

func (c *blockedCall) answer(o holder.Outcome) {
	c.outcome = o
	close(c.done)
}

func (c *blockedCall) await(ctx context.Context) holder.Outcome {
	select {
	case <-c.done:
	case <-ctx.Done():
		c.s.cancel(c.number, ctx.Err())
		<-c.done
	}
	return c.outcome
}
