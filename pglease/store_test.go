package pglease_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/pglease"
)

// A meter counts the statements of a pool, which take one exchange once prepared, and its notifications.
type meter struct{ n, notified atomic.Int64 }

func (m *meter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	if strings.Contains(start.SQL, "pg_notify") {
		m.notified.Add(1)
	} else {
		m.n.Add(1)
	}
	return ctx
}

func (m *meter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (m *meter) trace(c *pgxpool.Config) { c.ConnConfig.Tracer = m }

// count returns the number of exchanges of f.
func (m *meter) count(f func()) int {
	n := m.n.Load()
	f()
	return int(m.n.Load() - n)
}

// A renewal, a change and a release of a lease that this client has acquired take one exchange each, and
// so does a refusal. An acquire without contention takes two. Only a change and a release send a
// notification before they return.
func TestExchanges(t *testing.T) {
	var m meter
	_, p := database(t, "", m.trace)
	first, other := store(t, p, nil), store(t, p, nil).Authority()
	a, forgetful := first.Authority(), store(t, p, &pglease.Options{Names: 1}).Authority()
	shorthand.Exchanges(t, first, other, "y", func() int { return int(m.n.Load()) }, 2, 1, 2, 3, 2, 1, 2, 2) // the release conflicts first, because of the renewal that loads
	change := lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}
	for _, s := range []struct {
		what string
		by   lease.Authority
		req  lease.Request
		code lease.Code
		want int
	}{
		{"acquire of another name", forgetful, acquire(idB, time.Minute), 0, 2},
		{"acquire, so that the store forgets the other name", forgetful, acquire(idA, time.Minute), 0, 2},
		{"release of another name", forgetful, release(idB), 0, 2},
		{"release", forgetful, release(idA), 0, 1},
		{"acquire", a, acquire(idA, time.Minute), 0, 2},
		{"change", a, change, 0, 1},
		{"change again, which changes nothing", a, change, 0, 1},
		{"renewal after the change", a, renew(idB), 0, 1},
		{"release with another ID", a, release(idA), lease.ErrIDMismatch, 1},
		{"release of the second ID", a, release(idB), 0, 1},
		{"release again", a, release(idB), lease.ErrIDMismatch, 1},
		{"infinite acquire", a, acquire(idB, lease.Infinite), 0, 2},
		{"renewal of an infinite lease", a, renew(idB), 0, 1},
		{"release of an infinite lease", a, release(idB), 0, 1},
		{"acquire for a time that the server cannot count", a, acquire(idB, time.Minute+1), 0, 2},
		{"renewal for such a time", a, renew(idB), 0, 2},
	} {
		notified, name := m.notified.Load(), "x"
		if strings.HasSuffix(s.what, "another name") {
			name = "another"
		}
		if n := m.count(func() { do(t, s.by, name, s.req, s.code) }); n != s.want {
			t.Errorf("%s: %d exchanges, want %d", s.what, n, s.want)
		}
		want := int64(0)
		if a := s.req.Action; s.code == 0 && (a == lease.ActionRelease || a == lease.ActionChange && s.what != "change again, which changes nothing") {
			want = 1
		}
		if n := m.notified.Load() - notified; n != want {
			t.Errorf("%s: %d notifications, want %d", s.what, n, want)
		}
	}
	if _, err := p.Exec(t.Context(), "update lease set nanos = 0"); err != nil { // an operator rounds the end
		t.Fatal(err)
	}
	do(t, a, "x", lease.Request{Action: lease.ActionChange, ID: idB, Proposed: idA}, 0)
	if n := m.count(func() { do(t, a, "x", renew(idA), 0) }); n != 2 {
		t.Errorf("a renewal for such a time, after the end was rounded: %d exchanges, want 2", n)
	}
}

// SPEC S3, S2: after a row is deleted, restored or changed by hand, tokens keep rising and no version recurs.
func TestTokensOutliveTheRow(t *testing.T) {
	_, p := database(t, "")
	exec := func(sql string) func() error {
		return func() error { _, err := p.Exec(t.Context(), sql); return err }
	}
	do(t, store(t, p, nil).Authority(), "x", acquire(idA, time.Minute), 0)
	if err := exec("create table copied as table lease")(); err != nil {
		t.Fatal(err)
	}
	open := func(floor lease.Token) shorthand.Store { return store(t, p, &pglease.Options{Floor: floor}) }
	const old = "set id = (select id from copied), version = 1, epoch = 1 where name = 'x'"
	shorthand.TokensOutliveTheRecord(t, "x", open, map[string]func() error{
		"a deletion":                       exec("delete from lease"),
		"a restoration":                    exec("delete from lease; insert into lease table copied"),
		"an old version":                   exec("update lease " + old),
		"an old version past the view":     exec("update lease_row " + old),
		"a higher floor, and the deletion": exec("update lease_floor set epoch = epoch + 100, version = version + 100; delete from lease"),
	})
	for _, forgetful := range []string{"truncate lease_row", "truncate lease_floor", "delete from lease_floor",
		"update lease_floor set epoch = epoch - 1", "update lease_floor set version = 0, epoch = epoch + 1", "insert into lease_floor default values"} {
		if exec("begin; delete from lease; "+forgetful+"; commit")() == nil {
			t.Errorf("%s: tokens are forgotten", forgetful)
		}
	}
	if exec("update lease set name = 'y'")() == nil {
		t.Error("a lease can be renamed")
	}
}

// waitFor blocks until a statement that contains the words waits for a lock.
func waitFor(t *testing.T, p *pgxpool.Pool, words string) {
	t.Helper()
	eventually(t, "a statement that waits for a lock", func(ctx context.Context) error {
		var n int
		err := p.QueryRow(ctx, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%'||$1||'%'", words).Scan(&n)
		if err == nil && n == 0 {
			err = fmt.Errorf("none with %q", words)
		}
		return err
	})
}

// SPEC S4: the time of a store never falls.
func TestClockSetBack(t *testing.T) {
	_, p := database(t, "")
	enginetest.ClockSetBack(t, func(t testing.TB) enginetest.Store { return store(t, p, nil) }, func() {
		if _, err := p.Exec(t.Context(), "update lease_row set until = until + interval '1 h', changed = changed + interval '1 h', version = version + 1"); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOptions(t *testing.T) {
	p := pool(t, shared.URL("postgres"))
	for what, o := range map[string]*pglease.Options{
		"Options.Schema": {Schema: "a\x00b"}, "Options.Floor": {Floor: lease.TokenOf(1<<63 - 1)}, "Options.Names": {Names: -1}, "Options.Limits.MaxPeriod": {Limits: lease.Limits{MaxPeriod: -1}},
	} {
		if _, err := pglease.New(p, o); lease.CodeOf(err) != lease.ErrOption || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err1 := pglease.New(nil, nil)
	_, err2 := pglease.NewSQL(nil, nil)
	for _, err := range []error{err1, err2, pglease.Migrate(t.Context(), nil, nil), pglease.MigrateSQL(t.Context(), nil, nil)} {
		if lease.CodeOf(err) != lease.ErrOption {
			t.Error(err)
		}
	}
}
