package leasefault

import (
	"context"
	"slices"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
)

// A StoreOp is an operation of a [lease.Store]. A [Line] can apply a fault to the calls of this operation.
type StoreOp uint8

const (
	// Load stands for the method Load of a store in a [Line].
	Load StoreOp = iota + 1

	// Swap stands for the method Swap of a store in a [Line].
	Swap
)

// String returns "load" or "swap".
func (op StoreOp) String() string {
	if op == Load {
		return "load"
	}
	return "swap"
}

// Any stands for all actions of an authority in a [Line].
const Any lease.Action = 0

// LoadOrSwap stands for both Load and Swap in a [Line].
const LoadOrSwap StoreOp = 0

type operation interface {
	lease.Action | StoreOp
	String() string
}

// A Line is one line of a script, which applies a fault to some calls of an operation. [Nth], [First], [From]
// and [Always] return a Line. They panic if the fault is nil, n is less than 1, or op does not exist.
type Line[Op operation] struct {
	op    Op
	from  int // the number of the first call of op with the fault; the first call of op has the number 1
	to    int // the number of the last call of op with the fault; 0 if there is no last one
	fault Fault
}

// Nth returns a [Line] that applies f only to the n-th call of op. For the first call, n is 1.
func Nth[Op operation](n int, op Op, f Fault) Line[Op] {
	return Line[Op]{op, n, n, f}.validate("Nth", n)
}

// First returns a [Line] that applies f to the first n calls of op.
func First[Op operation](n int, op Op, f Fault) Line[Op] {
	return Line[Op]{op, 1, n, f}.validate("First", n)
}

// From returns a [Line] that applies f to the n-th call of op and to all later calls.
func From[Op operation](n int, op Op, f Fault) Line[Op] {
	return Line[Op]{op, n, 0, f}.validate("From", n)
}

// Always returns a [Line] that applies f to every call of op.
func Always[Op operation](op Op, f Fault) Line[Op] {
	return Line[Op]{op, 1, 0, f}.validate("Always", 1)
}

// validate returns l, or panics if n or a field of l is invalid. The constructor is named in the message.
func (l Line[Op]) validate(constructor string, n int) Line[Op] {
	must(n >= 1, "%s: n is %d, and must be at least 1, the first call", constructor, n)
	mustFaults(constructor, l.fault)
	last := Op(Swap)
	if _, ok := any(l.op).(lease.Action); ok {
		last = Op(lease.ActionWrite)
	}
	must(l.op <= last, "%s: op is %d, and must be at most %d, %v", constructor, uint8(l.op), uint8(last), last)
	return l
}

// Script returns an authority that passes calls on to the given authority, and applies the faults of the
// given lines to some of these calls. If several lines apply to a call, their faults are combined in the
// order of the lines, as by [Chain]. Each line counts the calls of its operation for all leases together.
//
// The faults of [Detach] and [Repeat] use the given authority until their cleanup functions have run. Cleanup
// functions run in the reverse order of their registration. If one of your own cleanup functions closes this
// authority, register your function before you make such a fault.
func Script(a lease.Authority, lines ...Line[lease.Action]) lease.Authority {
	must(a != nil, "Script: the authority must not be nil")
	return wrap.Authority(&scripted{a, newCallCounter("Script", lines)}, a)
}

// ScriptStore is like [Script] for a store: it passes calls on to s, and applies faults to some of them.
func ScriptStore(s lease.Store, lines ...Line[StoreOp]) lease.Store {
	must(s != nil, "ScriptStore: the store must not be nil")
	return wrap.Store(&scriptedStore{s, newCallCounter("ScriptStore", lines)}, s)
}

type scripted struct {
	lease.Authority
	counter *callCounter[lease.Action]
}

func (a *scripted) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return executeScripted(ctx, a.counter, req.Action, name, func(ctx context.Context) (lease.Result, error) {
		return a.Authority.Do(ctx, name, req)
	})
}

type scriptedStore struct {
	lease.Store
	counter *callCounter[StoreOp]
}

func (s *scriptedStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	return executeScripted(ctx, s.counter, Load, name, func(ctx context.Context) (lease.Snapshot, error) {
		return s.Store.Load(ctx, name)
	})
}

func (s *scriptedStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return executeScripted(ctx, s.counter, Swap, name, func(ctx context.Context) (lease.Snapshot, error) {
		return s.Store.Swap(ctx, name, old, next)
	})
}

// executeScripted counts a call, and finds all lines that apply to this call. It then executes the call with
// the faults of these lines.
func executeScripted[Op operation, A any](ctx context.Context, counter *callCounter[Op], op Op, name string, do func(context.Context) (A, error)) (A, error) {
	about := about[Op]{op, name}
	faults, last := counter.addCall(about)
	c := &Call{Op: op.String(), Name: name, last: last, do: func(ctx context.Context) (any, error) { return do(ctx) }}
	answer, err := c.executeWith(ctx, chain(faults))
	a, answered := answer.(A) // answered is false if a fault has returned the error
	if answered && err == nil {
		counter.keep(about, a)
	}
	return a, err
}

// A callCounter counts the calls for each line of a script. It also stores the last successful answer of each
// operation on each lease.
type callCounter[Op operation] struct {
	lines []Line[Op]

	mu    sync.Mutex
	count []int // for each line, the number of calls so far
	last  map[about[Op]]any
}

type about[Op operation] struct {
	op   Op
	name string
}

func newCallCounter[Op operation](constructor string, lines []Line[Op]) *callCounter[Op] {
	for _, l := range lines {
		must(l.fault != nil, "%s: a line is zero, and must be made by Nth, First, From or Always", constructor)
	}
	return &callCounter[Op]{lines: slices.Clone(lines), count: make([]int, len(lines)), last: map[about[Op]]any{}}
}

// addCall counts a call. It returns the faults for this call, and the last successful answer to the same
// operation on the same lease.
func (c *callCounter[Op]) addCall(call about[Op]) (faults []Fault, last any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.lines {
		if l.op != 0 && l.op != call.op {
			continue
		}
		c.count[i]++
		if n := c.count[i]; n >= l.from && (l.to == 0 || n <= l.to) {
			faults = append(faults, l.fault)
		}
	}
	return faults, c.last[call]
}

func (c *callCounter[Op]) keep(call about[Op], answer any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[call] = answer
}
