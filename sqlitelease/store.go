package sqlitelease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/wrap"
)

// Load returns the record of a name. Load locks the file, so no other process can be in the middle of a
// renewal. Otherwise, Load could return a time after the end of a lease, and the renewal could then still be
// committed.
func (s *Store) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	if err := lease.CheckName(name); err != nil {
		return lease.Snapshot{}, err
	}
	var snap lease.Snapshot
	err := s.do(ctx, engine.Request{}, func(t *tx) (err error) {
		snap, err = t.load(name)
		return err
	})
	if err != nil {
		return lease.Snapshot{}, describeError("load "+strconv.Quote(name), err)
	}
	return snap, nil
}

// Swap replaces the record of a lease by the record in the parameter next. The parameter old is a Snapshot of
// the record to replace. If the record has changed since this Snapshot was read, or if its state has ended
// since old.Now, Swap returns [lease.ErrConflict] and the current Snapshot.
func (s *Store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	if err := engine.CheckSwap(name, old, next); err != nil {
		return lease.Snapshot{}, err
	}
	var snap lease.Snapshot
	err := s.gate.Swap(name, old.Record, next, func(r engine.Request) error {
		return s.do(ctx, r, func(t *tx) (err error) {
			if snap, err = t.load(name); err != nil {
				return err
			}
			if snap.Version != old.Version || old.Ended(t.now) {
				return lease.ErrConflict
			}
			if err := next.ValidateAfter(snap.Record); err != nil {
				return err
			}
			snap, err = t.store(name, snap.Record, next)
			return err
		})
	})
	if err == nil || err == lease.ErrConflict { // after other errors, f may still write snap
		return snap, err
	}
	return lease.Snapshot{}, describeError("swap "+strconv.Quote(name), err)
}

// Authority returns an authority that reads and writes the record of a lease in one transaction. The
// authority is a [lease.Watcher] and a [lease.Lister].
func (s *Store) Authority() lease.Authority {
	inner := lease.NewAuthority(s)
	return wrap.Authority(authority{inner, s}, inner)
}

type authority struct {
	lease.Authority
	s *Store
}

func (a authority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	fail := func(err error) error { return &lease.OpError{Op: req.Action.String(), Name: name, Err: err} }
	if err := cmp.Or(lease.CheckName(name), a.s.limits.Check(req)); err != nil {
		return lease.Result{}, fail(err)
	}
	var res lease.Result
	err := a.s.do(ctx, requestOf(name, req), func(t *tx) error {
		old, err := t.load(name)
		if err != nil {
			return err
		}
		next, write, err := lease.Decide(old.Record, req, a.s.limits, t.now)
		if _, refused := err.(lease.Code); err != nil && !refused {
			return err
		}
		if next.State == lease.Leased && next.Epoch > old.Record.Epoch {
			if err := a.s.gate.Admit(name, next.Duration); err != nil {
				return err
			}
		}
		if write {
			snap, err := t.store(name, old.Record, next)
			if err != nil {
				return err
			}
			next = snap.Record
		}
		res = lease.Result{Record: next, Now: t.now, MinRemaining: next.Remaining(t.now)}
		return err
	})
	if err == nil {
		a.note(name, req.Action, res.Record)
		return res, nil
	}
	if c, refused := err.(lease.Code); refused && c.Refusal() { // after other errors, f may still write res
		if req.Action == lease.ActionRenew {
			a.note(name, req.Action, lease.Record{}) // another process has the lease
		}
		return res, fail(err)
	}
	if gone := (*goneError)(nil); errors.As(err, &gone) {
		// All leases of the lost file have ended. So a request that needs one of them is refused, which tells the
		// holder at once that it has lost its lease.
		_, _, err := lease.Decide(lease.Record{}, req, a.s.limits, gone.now)
		if c, refused := err.(lease.Code); refused && c.Refusal() {
			return lease.Result{Now: gone.now}, fail(fmt.Errorf("sqlitelease: %w", &goneError{gone.what, gone.now, c}))
		}
	}
	return lease.Result{}, fail(describeError(req.Action.String()+" "+strconv.Quote(name), err))
}

// requestOf returns the request as the gate sees it.
func requestOf(name string, req lease.Request) engine.Request {
	switch req.Action {
	case lease.ActionRenew:
		return engine.Request{Urgent: true, Name: name, Renewals: 1}
	case lease.ActionRelease:
		return engine.Request{Urgent: true}
	}
	return engine.Request{Name: name}
}

// The method note tells the gate the new state of a lease after a request was granted.
func (a authority) note(name string, action lease.Action, r lease.Record) {
	if action != lease.ActionRead && action != lease.ActionWrite {
		a.s.gate.Note(name, r)
	}
}

// pageSize is the number of rows that List reads in one transaction.
const pageSize = 500

// List returns the leases whose names begin with prefix, sorted by name. If a row is not a valid record, List
// yields an error for it, and goes on. Other processes can use the file while the body of the loop runs.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.ListPages(ctx, prefix, pageSize, func(after string) ([]engine.Listed, error) {
		var page []engine.Listed
		err := s.do(ctx, engine.Request{}, func(t *tx) (err error) {
			page, err = t.page(after, prefix)
			return err
		})
		if err != nil { // f may still write page
			return nil, describeError("list from "+strconv.Quote(max(after, prefix)), err)
		}
		return page, nil
	})
}

// page reads the next rows, in the order of their names.
func (t *tx) page(after, prefix string) (page []engine.Listed, err error) {
	if err := t.tick(); err != nil {
		return nil, err
	}
	rows, err := t.s.conn.QueryContext(context.Background(),
		"select name, record from lease where name >= max(?1, ?2) and name <> ?1 order by name limit ?3", after, prefix, pageSize)
	if err != nil {
		t.failed = err
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l engine.Listed
		var text string
		if err := rows.Scan(&l.Name, &text); err != nil {
			return nil, err
		}
		if l.Record, l.Err = parse(l.Name, text); l.Err == nil {
			l.Entry = engine.ListEntry(l.Name, lease.Snapshot{Record: l.Record, Now: t.now})
		}
		page = append(page, l)
	}
	return page, rows.Err()
}
