package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/holder"
)

// RunAll is like [Run], but for a function f that needs several leases at once. RunAll calls f with the
// tokens of the leases, in the order of ls. The context of f ends as soon as one of the leases is about to
// end. The cause of the context is then the LostError of that lease, whose Name tells which lease it is. When
// f has returned, or a lease cannot be acquired, all leases are released at the same time.
//
// RunAll acquires the leases in the order of their names, and holds the earlier ones while it waits for the
// next. So two calls of RunAll never wait for each other, in whatever order they list the leases. There can
// still be a deadlock if f, or a caller that already holds a lease, waits for other leases. If a lease is
// lost while RunAll waits for another one, RunAll does not call f, and returns the same error as after a loss
// during f. [RunOptions.Again] is called once for all leases together.
//
// The leases can be at different authorities. But each must have a method Name, as a Session has, and no two
// may have the same name. If ls does not meet these conditions or is empty, RunAll returns a
// [*lease.FieldError] with the code [lease.ErrOption].
func RunAll(ctx context.Context, ls []lease.Lease, f func(ctx context.Context, toks []lease.Token) error, o *RunOptions) error {
	rs, err := runners(ctx, ls, f == nil, o)
	if err != nil {
		return err
	}
	for _, r := range rs {
		defer r.flush()
		end, ok := r.begin()
		if !ok {
			return r.inUse(r.field)
		}
		defer end()
	}
	return rs[0].repeat(ctx, func() (granted, takenOver bool, err error) {
		a := attempt{rs: rs, toks: make([]lease.Token, len(rs)), f: f, errs: make([]error, len(rs))}
		defer func() { // runs even if f panics or ends its goroutine
			a.releases.Wait()
			for _, failed := range a.errs {
				err = holder.Join(err, failed)
			}
		}()
		err = a.take(ctx, 0)
		return !a.failed, a.takenOver, err
	})
}

type member struct {
	*runner
	at    int    // the index of the lease in the arguments
	field string // the name of the argument
}

// runners checks the arguments of RunAll, and returns the leases sorted by name.
func runners(ctx context.Context, ls []lease.Lease, noFunction bool, o *RunOptions) (rs []member, err error) {
	needContext(ctx, "RunAll")
	switch {
	case noFunction:
		return nil, fields.Missing("RunAll.f")
	case len(ls) == 0:
		return nil, &lease.FieldError{Field: "RunAll.ls", Value: "[]", Bound: "must not be empty", Code: lease.ErrOption}
	}
	for i, l := range ls {
		m := member{at: i, field: fmt.Sprintf("RunAll.ls[%d]", i)}
		if l == nil {
			return nil, fields.Missing(m.field)
		}
		if m.runner, err = newRunner(ctx, "RunAll", l, func(context.Context, lease.Token) error { return nil }, o); err != nil {
			return nil, err
		}
		rs = append(rs, m)
	}
	slices.SortStableFunc(rs, func(a, b member) int { return cmp.Compare(a.lease.Name(), b.lease.Name()) })
	for i, m := range rs {
		bad := ""
		if m.lease.Name() == "" {
			bad = "must have a method Name"
		} else if i > 0 && m.lease.Name() == rs[i-1].lease.Name() {
			bad = fmt.Sprintf("must have another name than ls[%d]", rs[i-1].at)
		}
		if bad != "" {
			return nil, &lease.FieldError{Field: m.field, Value: strconv.Quote(m.lease.Name()), Bound: bad, Code: lease.ErrOption}
		}
	}
	return rs, nil
}

// An attempt acquires several leases, and calls f when it has acquired all of them.
type attempt struct {
	rs   []member
	toks []lease.Token
	f    func(context.Context, []lease.Token) error

	failed    bool // a lease cannot be acquired
	takenOver bool // another Session has taken one of the leases over

	releases sync.WaitGroup
	errs     []error // the errors of the releases, in the order of rs
}

// The method a.take acquires the leases of a.rs[i:] one after another, and holds each lease while it acquires
// the next one. The context of each term is derived from the context of the previous term. The leases are
// released in the background, so that no release has to wait for another one.
func (a *attempt) take(ctx context.Context, i int) error {
	if i == len(a.rs) {
		return a.rs[0].watch(ctx, a.stall, func(ctx context.Context) error { return a.f(ctx, slices.Clone(a.toks)) })
	}
	m := a.rs[i]
	m.releaseLater = func(release func() error) {
		a.releases.Go(func() { a.errs[i] = release() })
	}
	granted, takenOver, err := m.once(ctx, func(ctx context.Context, tok lease.Token) error {
		a.toks[m.at] = tok
		return a.take(ctx, i+1)
	})
	if !granted && ctx.Err() == nil {
		a.failed = true
	}
	a.takenOver = a.takenOver || takenOver
	return err
}

// If f makes no progress, the method a.stall ends the terms of all leases.
func (a *attempt) stall(why error) {
	for _, m := range a.rs {
		m.session.stall(a.toks[m.at], why)
	}
}
