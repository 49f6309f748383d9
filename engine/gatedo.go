package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencedlease/lease"
)

// Do calls f as soon as the Gate lets the request r through, and returns the error of f. If the Gate does not
// let the request through, Do returns the error of [Gate.Enter]. The request is urgent if r.Urgent is set or
// [IsUrgent] returns true for ctx.
//
// f must send the request, and must not return before the request has ended. If f returns nil or an error
// with a [lease.Code], such as [lease.ErrConflict], the server has answered. After any other error, for
// example because the server is overloaded, the Gate sends fewer requests.
func (g *Gate) Do(ctx context.Context, r Request, f func() error) (err error) {
	if g == nil {
		return f()
	}
	r.Urgent = r.Urgent || IsUrgent(ctx)
	pass, err := g.Enter(ctx, r)
	if err != nil {
		return fmt.Errorf("not sent while other requests of this store are under way: %w", err)
	}
	answered := false
	defer func() { pass.Leave(answered) }() // deferred, so that it runs even if f panics
	err = f()
	answered = isAnswer(err)
	if errors.Is(err, lease.ErrConflict) {
		pass = pass.Renewed(0)
	}
	return err
}

// isAnswer reports whether err, which may be nil, shows that the server has answered.
func isAnswer(err error) bool {
	if err == nil {
		return true
	}
	c := lease.CodeOf(err)
	return c != 0 && c != lease.ErrUnsent && c != lease.ErrClosed
}

// Swap calls f and returns its error. Like the method Swap of a [lease.Store], f must replace a record. The
// parameter of f tells the Gate how to treat the request: f passes it to [Gate.Do] or [Gate.Enter], unless f
// sends the request through a [Batcher].
//
// If the new record grants a lease, but the server is too busy to renew one more lease, Swap returns the
// error of [Gate.Admit], and does not call f. Otherwise the error of f tells the Gate whether the store now
// holds the lease. The error nil means that f has written the new record. The error [lease.ErrConflict] means
// that another client may have the lease.
func (g *Gate) Swap(name string, old, next lease.Record, f func(Request) error) error {
	var r Request
	switch grants := next.Epoch > old.Epoch; {
	case grants:
		if err := g.Admit(name, next.Duration); err != nil {
			return err
		}
	case next.State == lease.Leased:
		r = Request{Urgent: true, Name: name, Renewals: 1}
	case next.State == lease.Available: // this is a release
		r.Urgent = true
	}
	err := f(r)
	switch {
	case err == nil:
		g.Note(name, next)
	case errors.Is(err, lease.ErrConflict):
		g.Note(name, lease.Record{})
	}
	return err
}
