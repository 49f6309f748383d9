package pglease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencedlease/lease"
)

// SPEC S1, A2: an edit by hand changes only the version of the row that its statement saw. If
// another transaction has changed the row, the edit fails or changes nothing.
func TestEditIsOfTheRowThatWasSeen(t *testing.T) {
	const (
		edit     = "update lease set owner = 'edited' where name = 'x'"
		toB      = "update lease_row set id = 'bbbbbbbb-0000-4000-8000-000000000002', epoch = 2"
		ofA      = " where id = 'aaaaaaaa-0000-4000-8000-000000000001'"
		conflict = "40001"
	)
	for what, s := range map[string]struct{ meanwhile, edit, code, row string }{
		"nothing":                      {"select from lease_row for update", edit, "", "edited 1"},
		"a renewal":                    {"update lease_row set until = until + interval '1 s', version = version + 1", edit, conflict, "worker-1 1"},
		"an until set past the view":   {"update lease_row set until = until + interval '1 s'", edit, conflict, "worker-1 1"},
		"an until taken past the view": {"update lease_row set until = null, duration = 'infinite'", edit, conflict, "worker-1 1"},
		"a change":                     {toB, edit, conflict, "worker-1 2"},
		"another edit":                 {"update lease set owner = 'worker-2'", edit, conflict, "worker-2 1"},
		"a deletion":                   {"delete from lease", edit, conflict, ""},
		"a change before a deletion of the row with the ID": {toB, "delete from lease" + ofA, "", "worker-1 2"},
		"a change before a deletion of the name":            {toB, "delete from lease where name = 'x'", "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := pool(t, shared.URL(shared.Database(t)))
			a, ctx := store(t, p, nil).Authority(), t.Context()
			do(t, a, "x", acquire(idA, time.Hour), 0)
			tx, err := p.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background())
			if _, err := tx.Exec(ctx, s.meanwhile); err != nil {
				t.Fatal(err)
			}
			edited := make(chan error, 1)
			go func() {
				_, err := p.Exec(ctx, s.edit)
				edited <- err
			}()
			waitFor(t, p, s.edit)
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-edited; code(err) != s.code || err != nil && !strings.Contains(err.Error(), "x was changed meanwhile") {
				t.Errorf("%v, want %q", err, s.code)
			}
			var row string
			if err := p.QueryRow(ctx, "select concat(max(owner), ' ' || max(epoch)) from lease").Scan(&row); err != nil || row != s.row {
				t.Errorf("the row has %q, %v, want %q", row, err, s.row)
			}
			if s.row == "" {
				if res := do(t, a, "x", acquire(idB, time.Hour), 0); strings.HasPrefix(s.meanwhile, toB) && res.Record.Epoch != 3 {
					t.Errorf("epoch %d after the deletion of 2", res.Record.Epoch)
				}
			}
		})
	}
}

// code returns the SQLSTATE of an error.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// SPEC A2, A5: if an operator edits another column again and again, no edit undoes an acknowledged
// change.
func TestEditsUndoNothing(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	a := s.Authority()
	do(t, a, "x", acquire(idA, time.Hour), 0)
	editing, stop := context.WithCancel(ctx)
	defer stop()
	edits, refused := 0, 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for editing.Err() == nil {
			switch _, err := p.Exec(ctx, "update lease set owner = concat('edit ', version)"); {
			case err == nil:
				edits++
			case code(err) == "40001":
				refused++
			default:
				t.Error(err)
				return
			}
		}
	}()
	granted, conflicts, id, other := 0, 0, idA, idB
	for deadline := time.Now().Add(time.Minute); granted < 500 && time.Now().Before(deadline); {
		req := renew(id)
		if granted%4 == 0 {
			req = lease.Request{Action: lease.ActionChange, ID: id, Proposed: other}
		}
		res, err := a.Do(ctx, "x", req)
		if errors.Is(err, lease.ErrConflict) {
			conflicts++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		granted++
		if req.Action == lease.ActionChange {
			id, other = other, id
		}
		snap, err := s.Load(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		if snap.Record.Owner = res.Record.Owner; snap.Record != res.Record {
			t.Errorf("%v was granted, and there is %v", res.Record, snap.Record)
		}
	}
	stop()
	<-ended
	t.Logf("%d granted and %d conflicts beside %d edits, and %d that were refused", granted, conflicts, edits, refused)
	if granted < 500 || edits < 10 {
		t.Error("that proves nothing")
	}
}

// If an operator locks the rows before the edit, the edit is never refused.
func TestEditAfterALock(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	a, ctx := store(t, p, nil).Authority(), t.Context()
	do(t, a, "x", acquire(idA, time.Hour), 0)
	ended := make(chan error, 1)
	go func() {
		for range 100 {
			if err := pgx.BeginFunc(ctx, p, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, "select from lease for update"); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "update lease set owner = 'edited'")
				return err
			}); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for renewals := 0; ; renewals++ {
		select {
		case err := <-ended:
			if err != nil || renewals == 0 {
				t.Errorf("after %d renewals: %v", renewals, err)
			}
			return
		default:
			if _, err := a.Do(ctx, "x", renew(idA)); err != nil && !errors.Is(err, lease.ErrConflict) {
				t.Error(err)
			}
		}
	}
}
