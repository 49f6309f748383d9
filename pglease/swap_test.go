package pglease_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

// SPEC A2, S5, S8: a request that waits for a locked row looks at the row and the clock again when it gets
// the lock. Here the clock passes the end of the lease, or the row changes.
func TestRequestsWaitForALock(t *testing.T) {
	const byRenewal, pass = "update lease_row set until = now() + interval '1 h', version = version + 1;", "select pg_sleep(1.7)"
	swap := func(s *pglease.Store, old lease.Snapshot) error { // a grant to another holder
		next := lease.Record{State: lease.Leased, ID: idB, Duration: lease.Infinite, Epoch: old.Record.Epoch + 1}
		_, err := s.Swap(context.Background(), "x", old, next)
		return err
	}
	request := func(req lease.Request) func(*pglease.Store, lease.Snapshot) error {
		return func(s *pglease.Store, _ lease.Snapshot) error {
			_, err := s.Authority().Do(context.Background(), "x", req)
			return err
		}
	}
	for what, s := range map[string]struct {
		isolation       string
		duration        time.Duration
		lock            string
		request         func(s *pglease.Store, old lease.Snapshot) error
		waits           string // in the text of the statement that waits
		passes, commits bool
		want            lease.Code
	}{
		"the lease ends before the swap gets the lock":             {"", 1500 * time.Millisecond, "select from lease_row for update", swap, "for update", true, false, lease.ErrConflict},
		"a load of an expired lease waits for its renewal":         {"", 1500 * time.Millisecond, byRenewal + pass, request(acquire(idB, time.Minute)), "for share of l", false, true, lease.ErrHeldByOther},
		"an insert waits for a deletion":                           {"", 0, "delete from lease_row", swap, "insert into", false, true, lease.ErrConflict},
		"in a serializable transaction, another one has committed": {"serializable", time.Minute, "update lease set state = 'broken', until = null", request(renew(idA)), "for update", false, true, lease.ErrBroken},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, p := database(t, "", func(c *pgxpool.Config) {
				if s.isolation != "" {
					c.ConnConfig.RuntimeParams["default_transaction_isolation"] = s.isolation
				}
			})
			st, ctx := store(t, p, nil), t.Context()
			old, err := st.Load(ctx, "x")
			if err != nil {
				t.Fatal(err)
			}
			do(t, st.Authority(), "x", acquire(idA, max(s.duration, 1)), 0)
			if s.duration > 0 {
				if old, err = st.Load(ctx, "x"); err != nil || old.Record.At(old.Now).State != lease.Leased {
					t.Fatalf("%v, %v: the machine is too busy", old.Record, err)
				}
			}
			tx := lock(t, p, s.lock)
			answered := make(chan error, 1)
			go func() { answered <- s.request(st, old) }()
			waitFor(t, p, s.waits)
			if s.passes {
				if _, err := tx.Exec(ctx, pass); err != nil {
					t.Fatal(err)
				}
			}
			end := tx.Rollback
			if s.commits {
				end = tx.Commit
			}
			if err := end(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-answered; lease.CodeOf(err) != s.want {
				t.Errorf("%v, want %v", err, s.want)
			}
		})
	}
}

// lock runs sql in a transaction, which ends with the test at the latest.
func lock(t *testing.T, p *pgxpool.Pool, sql string) pgx.Tx {
	t.Helper()
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
	return tx
}
