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
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)), m.trace)
	a, other, forgetful := store(t, p, nil).Authority(), store(t, p, nil).Authority(), store(t, p, &pglease.Options{Names: 1}).Authority()
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
		{"first acquire of a name", a, acquire(idA, time.Minute), 0, 2},
		{"renewal", a, renew(idA), 0, 1},
		{"renewal again", a, renew(idA), 0, 1},
		{"refusal", a, acquire(idB, time.Minute), lease.ErrHeldByOther, 1},
		{"renewal by another client", other, renew(idA), 0, 2},
		{"renewal again by him", other, renew(idA), 0, 1},
		{"renewal, after that of the other client", a, renew(idA), 0, 1},
		{"change", a, change, 0, 1},
		{"change again, which changes nothing", a, change, 0, 1},
		{"renewal after the change", a, renew(idB), 0, 1},
		{"release with another ID", a, release(idA), lease.ErrIDMismatch, 1},
		{"release", a, release(idB), 0, 1},
		{"release again", a, release(idB), lease.ErrIDMismatch, 1},
		{"acquire again", a, acquire(idB, time.Minute), 0, 2},
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
}

// SPEC S3, S2: after a row is deleted, restored or changed by hand, tokens keep rising and no version recurs.
func TestTokensOutliveTheRow(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)))
	s, ctx := store(t, p, nil), t.Context()
	a := s.Authority()
	exec := func(sql string) {
		t.Helper()
		if _, err := p.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	loads, seen := map[string]lease.Snapshot{}, map[string]string{}
	newest := lease.Token("")
	then := func(what, sql string, grants int) {
		t.Helper()
		if sql != "" {
			exec(sql)
		}
		snap, err := s.Load(ctx, "x")
		if before, twice := seen[snap.Version]; err != nil || twice {
			t.Errorf("%s: version %s again, as %s; %v", what, snap.Version, before, err)
		}
		loads[what], seen[snap.Version] = snap, what
		for range grants {
			tok := do(t, a, "x", acquire(idA, time.Minute), 0).Record.Token()
			if tok.Compare(newest) <= 0 {
				t.Errorf("%s: token %s after %s", what, tok, newest)
			}
			newest = tok
		}
	}
	then("unknown", "", 1)
	then("copied", "create table copied as table lease", 20)
	then("granted 21 times", "", 0)
	then("deleted", "delete from lease", 1)
	for i := range 30 { // as often as a version that starts again would need to recur
		then(fmt.Sprint("granted after the deletion ", i), "", 1)
	}
	for _, what := range []string{"granted 21 times", "deleted"} {
		if _, err := s.Swap(ctx, "x", loads[what], lease.Record{Epoch: 1 << 40}); lease.CodeOf(err) != lease.ErrConflict {
			t.Errorf("a swap of the record that was %s: %v", what, err)
		}
	}
	then("deleted again", "delete from lease", 0)
	then("an old copy restored", "insert into lease table copied", 1)
	then("overwritten", "update lease set id = (select id from copied), version = 1, epoch = 1", 0)
	then("overwritten past the view", "update lease_row set id = (select id from copied), version = 1, epoch = 1", 1)
	for _, forgetful := range []string{"truncate lease_row", "truncate lease_floor", "delete from lease_floor",
		"update lease_floor set epoch = epoch - 1", "update lease_floor set version = 0, epoch = epoch + 1", "insert into lease_floor default values"} {
		if _, err := p.Exec(ctx, "begin; delete from lease; "+forgetful+"; commit"); err == nil {
			t.Errorf("%s: tokens are forgotten", forgetful)
		}
	}
	if _, err := p.Exec(ctx, "update lease set name = 'y'"); err == nil {
		t.Error("a lease can be renamed")
	}
	then("the floor raised", "update lease_floor set epoch = epoch + 100, version = version + 100", 1)
	then("the row deleted", "delete from lease", 1)
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

// Options.Floor is older than every token of a Store, also of a name that has a record already, and the
// tokens keep rising when the row is deleted.
func TestFloor(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)))
	do(t, store(t, p, nil).Authority(), "x", acquire(idA, time.Minute), 0)
	const floor = 1_000_000
	a := store(t, p, &pglease.Options{Floor: lease.TokenOf(floor)}).Authority()
	for i, s := range []struct {
		sql, name string
		req       lease.Request
		want      uint64
	}{
		{"", "x", renew(idA), 1},
		{"", "x", lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, floor + 1},
		{"", "new", acquire(idA, time.Minute), floor + 1},
		{"delete from lease", "x", acquire(idA, time.Minute), floor + 2},
		{"", "x", release(idA), floor + 2},
		{"", "x", acquire(idA, time.Minute), floor + 3},
	} {
		if _, err := p.Exec(t.Context(), s.sql); err != nil {
			t.Fatal(err)
		}
		if res := do(t, a, s.name, s.req, 0); res.Record.Epoch != s.want {
			t.Errorf("request %d: epoch %d, want %d", i, res.Record.Epoch, s.want)
		}
	}
}

// SPEC S4: the time of a store never falls.
func TestClockSetBack(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t, pglease.Tables)))
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
