package pglease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
)

var (
	idA = lease.MustParseID("aaaaaaaa-0000-4000-8000-000000000001")
	idB = lease.MustParseID("bbbbbbbb-0000-4000-8000-000000000002")
)

func acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: "worker-1", Duration: d}
}

func renew(id lease.ID) lease.Request   { return lease.Request{Action: lease.ActionRenew, ID: id} }
func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }

// do sends a request. The request must be granted if want is 0, and refused with the code want if
// not.
func do(t testing.TB, a lease.Authority, name string, req lease.Request, want lease.Code) lease.Result {
	t.Helper()
	res, err := a.Do(t.Context(), name, req)
	if lease.CodeOf(err) != want || want == 0 && err != nil {
		t.Fatalf("%v: %v, want code %v", req.Action, err, want)
	}
	return res
}

// A meter counts the statements of a pool. A statement takes one exchange after it is prepared. A
// meter also counts notifications, and the renewals that the server undid because they were late.
type meter struct{ n, notified, late atomic.Int64 }

func (m *meter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	if strings.Contains(start.SQL, "pg_notify") {
		m.notified.Add(1)
	} else {
		m.n.Add(1)
	}
	return ctx
}

func (m *meter) TraceQueryEnd(_ context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	if end.Err != nil && strings.Contains(end.Err.Error(), "lease x: the row was locked for too long") {
		m.late.Add(1)
	}
}

func (m *meter) trace(c *pgxpool.Config) { c.ConnConfig.Tracer = m }

// count returns the number of exchanges of f. If a renewal was late because of a busy machine, the
// store repeats it with a load and a swap, which count does not include.
func (m *meter) count(f func()) int {
	n, late := m.n.Load(), m.late.Load()
	f()
	return int(m.n.Load() - n - 2*(m.late.Load()-late))
}

// A renewal, a change and a release of a lease that this client has acquired take one exchange
// each, and so does a refusal. An acquire without contention takes two exchanges. Only a change and
// a release send a notification before they return.
func TestExchanges(t *testing.T) {
	var m meter
	p := pool(t, shared.URL(shared.Database(t)), m.trace)
	a, other := store(t, p, nil).Authority(), store(t, p, nil).Authority()
	const name = "x"
	change := lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}
	for _, s := range []struct {
		what string
		by   lease.Authority
		req  lease.Request
		code lease.Code
		want int
	}{
		{"first acquire of a name", a, acquire(idA, time.Minute), 0, 2},
		{"renewal", a, renew(idA), 0, 1},
		{"renewal again", a, renew(idA), 0, 1},
		{"refusal", a, acquire(idB, time.Minute), lease.ErrHeldByOther, 1},
		{"renewal by another client", other, renew(idA), 0, 2},
		{"renewal again by him", other, renew(idA), 0, 1},
		{"renewal that begins in vain, from what is old", a, renew(idA), 0, 3},
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
		notified := m.notified.Load()
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

func TestReadable(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	a := store(t, p, nil).Authority()
	do(t, a, t.Name(), acquire(idA, 15*time.Second), 0)
	res := do(t, a, t.Name(), renew(idA), 0)
	var state, owner, duration, id string
	var until time.Time
	var epoch uint64
	if err := p.QueryRow(t.Context(), "select state, owner, duration, until, epoch, id::text from lease where name = $1", t.Name()).
		Scan(&state, &owner, &duration, &until, &epoch, &id); err != nil {
		t.Fatal(err)
	}
	shown := lease.Record{State: lease.Leased, ID: lease.MustParseID(id), Owner: owner, Duration: 15 * time.Second, Until: until.UTC(), Epoch: epoch}
	if shown != res.Record || state != "leased" || duration != "15s" {
		t.Errorf("psql shows %s %s %v, want %v", state, duration, shown, res.Record)
	}
}

// SPEC S3, S2: after a row is deleted, restored or changed by hand, tokens keep rising and no
// version recurs.
func TestTokensOutliveTheRow(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	a := s.Authority()
	exec := func(sql string) {
		t.Helper()
		if _, err := p.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	var newest lease.Token
	seen := map[string]string{}
	granted := func(what string) {
		t.Helper()
		res := do(t, a, "x", acquire(idA, time.Minute), 0)
		if tok := res.Record.Token(); tok.Compare(newest) <= 0 {
			t.Errorf("%s: token %s after %s", what, tok, newest)
		}
		newest = res.Record.Token()
	}
	loaded := func(what string) lease.Snapshot {
		t.Helper()
		snap, err := s.Load(ctx, "x")
		if err != nil {
			t.Fatal(err)
		}
		if before, twice := seen[snap.Version]; twice {
			t.Errorf("%s: version %s again, as %s", what, snap.Version, before)
		}
		seen[snap.Version] = what
		return snap
	}
	loaded("unknown")
	granted("first")
	exec("create table copied as table lease")
	for range 20 {
		granted("again")
	}
	asleep := loaded("granted 21 times")
	exec("delete from lease")
	absent := loaded("deleted")
	granted("after the deletion")
	for range 30 { // as often as a version that starts again would need to recur
		loaded("granted after the deletion")
		granted("again after the deletion")
	}
	for what, old := range map[string]lease.Snapshot{"of a row deleted since": asleep, "of an absence over since": absent} {
		if _, err := s.Swap(ctx, "x", old, lease.Record{Epoch: 1 << 40}); lease.CodeOf(err) != lease.ErrConflict {
			t.Errorf("a swap %s: %v", what, err)
		}
	}
	exec("delete from lease")
	if again := loaded("deleted again"); again.Version == absent.Version {
		t.Errorf("the absence has version %s again", again.Version)
	}
	exec("insert into lease table copied")
	loaded("restored")
	granted("after the restoration of an old copy")
	exec("update lease set id = (select id from copied), version = 1, epoch = 1")
	loaded("overwritten")
	exec("update lease_row set id = (select id from copied), version = 1, epoch = 1")
	loaded("overwritten past the view")
	granted("after an old copy was written over the row")
	for _, forgetful := range []string{"truncate lease_row", "truncate lease_floor", "delete from lease_floor",
		"update lease_floor set epoch = epoch - 1", "update lease_floor set version = 0, epoch = epoch + 1", "insert into lease_floor default values"} {
		if _, err := p.Exec(ctx, "begin; delete from lease; "+forgetful+"; commit"); err == nil {
			t.Errorf("%s: tokens are forgotten", forgetful)
		}
	}
	if _, err := p.Exec(ctx, "update lease set name = 'y'"); err == nil {
		t.Error("a lease can be renamed")
	}
	exec("update lease_floor set epoch = epoch + 100, version = version + 100")
	granted("after the floor was raised")
	exec("delete from lease")
	granted("after the floor was raised, and the row deleted")
}

// A swap that inserts a row waits for a deletion that is not yet committed.
func TestInsertWaitsForADeletion(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	absent, err := s.Load(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	}
	tx, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(ctx, "delete from lease"); err != nil {
		t.Fatal(err)
	}
	swapped := make(chan error, 1)
	go func() {
		next := lease.Record{State: lease.Leased, ID: idB, Duration: lease.Infinite, Epoch: absent.Record.Epoch + 1}
		_, err := s.Swap(ctx, "x", absent, next)
		swapped <- err
	}()
	waitFor(t, p, "insert into")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-swapped; lease.CodeOf(err) != lease.ErrConflict {
		t.Errorf("a grant of epoch %d after one of 5: %v", absent.Record.Epoch+1, err)
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

// eventually calls f, with a time limit of one second for each call, until f succeeds.
func eventually(t testing.TB, what string, f func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(time.Millisecond) // a real engine
	}
}

// SPEC S5: if a swap waits for a lock until the lease has ended, the swap is a conflict.
func TestSwapLooksAtTheTimeUnderTheLock(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	do(t, s.Authority(), "x", acquire(idA, 2*time.Second), 0)
	old, err := s.Load(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(ctx, "select from lease_row for update"); err != nil {
		t.Fatal(err)
	}
	swapped := make(chan error, 1)
	go func() {
		next := old.Record
		next.ID, next.Epoch = idB, next.Epoch+1 // a change of a held lease
		_, err := s.Swap(ctx, "x", old, next)
		swapped <- err
	}()
	waitFor(t, p, "for update")
	if _, err := tx.Exec(ctx, "select pg_sleep(2.2)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil { // the row has not changed
		t.Fatal(err)
	}
	if err := <-swapped; lease.CodeOf(err) != lease.ErrConflict {
		t.Errorf("a lease was changed after it had expired: %v", err)
	}
}

// SPEC S8, A2: if a load finds a lease expired, it waits for a swap that read the clock before the
// end of the lease and commits after the end.
func TestLoadWaitsForASwapUnderWay(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	do(t, s.Authority(), "x", acquire(idA, 2*time.Second), 0)
	tx, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(ctx, "update lease set state = 'broken', until = null"); err != nil {
		t.Fatal(err)
	}
	if snap, err := s.Load(ctx, "x"); err != nil || snap.Record.At(snap.Now).State != lease.Leased {
		t.Fatalf("before the until, a load does not wait: %v, %v", snap.Record, err)
	}
	if _, err := tx.Exec(ctx, "select pg_sleep(2.2)"); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan lease.Snapshot, 1)
	go func() {
		snap, err := s.Load(ctx, "x")
		if err != nil {
			t.Error(err)
		}
		loaded <- snap
	}()
	waitFor(t, p, "for share of l")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if snap := <-loaded; snap.Record.At(snap.Now).State != lease.Broken {
		t.Errorf("a load shows %v", snap.Record)
	}
}

// SPEC S4: the clock of the server was ahead when the row was written.
func TestTimeDoesNotRunBackward(t *testing.T) {
	database := shared.Database(t)
	s := store(t, pool(t, shared.URL(database)), nil)
	do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	shared.Exec(t, database, "update lease_row set changed = changed + interval '20 s'")
	ahead, err := s.Load(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Until(ahead.Now); d < 15*time.Second {
		t.Errorf("the time is %v ahead, the row's by 20s", d)
	}
	res := do(t, s.Authority(), "x", renew(idA), 0)
	if res.Now.Before(ahead.Now) {
		t.Errorf("time went from %v to %v", ahead.Now, res.Now)
	}
	do(t, s.Authority(), "x", acquire(idB, time.Minute), lease.ErrHeldByOther)
}

// Options.Floor is older than every token of a Store, also of a name that has a record already, and the
// tokens keep rising when the row is deleted.
func TestFloor(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	do(t, store(t, p, nil).Authority(), "x", acquire(idA, time.Minute), 0)
	const floor = 1_000_000
	a := store(t, p, &pglease.Options{Floor: lease.TokenOf(floor)}).Authority()
	for i, s := range []struct {
		sql  string
		name string
		req  lease.Request
		want uint64
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

// The clock of the server was set back by an hour, and the holder crashed. A waiter gets the lease after
// its duration, though the clock reaches the end of the lease in an hour. A holder that renews keeps it.
func TestClockSetBack(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	var logged strings.Builder // the store warns once a minute, so this test reads it at the end
	watching := store(t, p, &pglease.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for _, name := range []string{"crashed", "held"} {
		do(t, store(t, p, nil).Authority(), name, acquire(idA, 2*time.Second), 0)
	}
	if _, err := p.Exec(t.Context(), "update lease_row set until = until + interval '1 h', changed = changed + interval '1 h', version = version + 1"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	holder, other := store(t, p, nil).Authority(), watching.Authority()
	for taken := false; !taken; time.Sleep(100 * time.Millisecond) { // a real engine
		do(t, holder, "held", renew(idA), 0)
		do(t, other, "held", acquire(idB, time.Minute), lease.ErrHeldByOther)
		for e, err := range watching.List(t.Context(), "held") {
			if err != nil || e.Record.State != lease.Leased {
				t.Errorf("%+v, %v", e, err)
			}
		}
		res, err := other.Do(t.Context(), "crashed", acquire(idB, 2*time.Second))
		if taken = err == nil; time.Since(began) > time.Minute {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("a lease of 2s was taken over after %v", took)
	} else {
		t.Logf("taken over after %v", took)
	}
	if text := logged.String(); !strings.Contains(text, "behind=59m5") && !strings.Contains(text, "behind=1h0m0") || strings.Count(text, "\n") != 1 {
		t.Errorf("logged %q", text)
	}
}

// The tables can be in a PostgreSQL schema that is not in the search path.
func TestSchema(t *testing.T) {
	database := shared.Database(t)
	shared.Exec(t, database, `drop view lease; drop table lease_row, lease_floor; create schema "my ""leases"; set search_path to "my ""leases";`+pglease.Tables)
	shared.Exec(t, database, `set search_path to "my ""leases";`+pglease.Tables) // again: nothing changes
	p := pool(t, shared.URL(database))
	a := store(t, p, &pglease.Options{Schema: `my "leases`}).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	if _, err := p.Exec(t.Context(), `delete from "my ""leases".lease`); err != nil {
		t.Fatal(err)
	}
	if res := do(t, a, "x", acquire(idB, time.Minute), 0); res.Record.Epoch != 2 {
		t.Errorf("epoch %d after the deletion, want 2", res.Record.Epoch)
	}
}

// A pooler gives every statement another connection, and resets the state of the connection.
func TestPooler(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)), func(c *pgxpool.Config) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		c.AfterRelease = func(*pgx.Conn) bool { return false }
	})
	a := store(t, p, nil).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	do(t, a, "x", renew(idA), 0)
	do(t, a, "x", acquire(idB, time.Minute), lease.ErrHeldByOther)
	do(t, a, "x", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}, 0)
	do(t, a, "x", acquire(idB, time.Minute), 0)
}

func TestErrorsSayWhatToDo(t *testing.T) {
	load := func(t *testing.T, url string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := store(t, pool(t, url), nil).Authority().Do(ctx, "jobs/nightly", acquire(idA, time.Minute))
		return err
	}
	database := shared.Database(t)
	shared.Exec(t, database, `create role "`+database+`" login`)
	worker := strings.Replace(shared.URL(database), "postgres@", database+"@", 1)
	says(t, load(t, worker), "jobs/nightly", "42501", "grant select, insert, update on lease_row", "on lease_floor")
	shared.Exec(t, database, fmt.Sprintf(`grant select, insert, update on lease_row, lease_mark to %s; grant select, update on lease_floor to %[1]s`, database))
	if err := load(t, worker); err != nil {
		t.Errorf("with the permissions that are asked for: %v", err)
	}
	says(t, load(t, shared.URL(database)+"&default_transaction_read_only=on"), "jobs/nightly", "primary")
	for _, wrong := range []string{"id = null", "duration = '15 s'", "until = null", "until = '10000-01-02'"} {
		shared.Exec(t, database, "update lease set "+wrong)
		err := load(t, worker)
		says(t, err, "jobs/nightly", "correct it, or delete it")
		if lease.CodeOf(err) != lease.ErrCorrupt {
			t.Errorf("the code of %v", err)
		}
		shared.Exec(t, database, "delete from lease")
		if err := load(t, worker); err != nil {
			t.Errorf("after the row was deleted: %v", err)
		}
	}
	says(t, load(t, shared.URL("postgres")), "jobs/nightly", "call pglease.Migrate")
	says(t, load(t, shared.URL("nowhere")), "jobs/nightly", "connection string")
	says(t, load(t, "postgres://postgres@127.0.0.1:1/x?sslmode=disable"), "jobs/nightly", "check that the server is up")
}

// Only an error whose cause no retry can remove is marked as permanent.
func TestPermanentErrors(t *testing.T) {
	database := shared.Database(t)
	shared.Exec(t, database, `create role "none_`+database+`" login`)
	old, floorless := shared.Database(t), shared.Database(t)
	shared.Exec(t, old, "alter table lease_floor drop column schema")
	shared.Exec(t, floorless, "alter table lease_floor disable trigger all; delete from lease_floor")
	older := shared.Database(t)
	shared.Exec(t, older, "update lease_floor set schema = 1")
	for what, s := range map[string]struct {
		url       string
		permanent bool
		says      string
	}{
		"no tables":           {shared.URL("postgres"), true, "call pglease.Migrate"},
		"no permission":       {strings.Replace(shared.URL(database), "postgres@", "none_"+database+"@", 1), true, "grant select"},
		"no database":         {shared.URL("nowhere"), true, "connection string"},
		"a column is missing": {shared.URL(old), true, "call pglease.Migrate or run tables.sql, which keep the leases"},
		"an older schema":     {shared.URL(older), true, "the tables have version 1, and must have 2 or newer"},
		"no floor":            {shared.URL(floorless), true, "lease_floor has no row"},
		"not UTF8":            {shared.URL(database) + "&client_encoding=latin1", true, "the connection has the client_encoding LATIN1"},
		"a standby":           {shared.URL(database) + "&default_transaction_read_only=on", false, "primary"},
		"no server":           {"postgres://postgres@127.0.0.1:1/x?sslmode=disable", false, "check that the server is up"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, req := range []lease.Request{acquire(idA, time.Minute), release(idA)} {
				_, err := store(t, pool(t, s.url), nil).Authority().Do(t.Context(), "x", req)
				if req.Action == lease.ActionRelease && what == "a standby" {
					continue // a refusal writes nothing
				}
				says(t, err, s.says)
				var permanent *lease.PermanentError
				if errors.As(err, &permanent) != s.permanent || lease.CodeOf(err) != 0 {
					t.Errorf("permanent is %v of %v", !s.permanent, err)
				}
			}
		})
	}
}

// An opened store is a Store or an SQLStore.
type opened interface {
	lease.Store
	Authority() lease.Authority
}

// openers has a function for each kind of store, which opens the store with connections of the
// given configuration. The function reset closes the idle connections.
var openers = map[string]func(t *testing.T, c *pgxpool.Config) (s opened, reset func()){
	"pgx": func(t *testing.T, c *pgxpool.Config) (opened, func()) {
		p, err := pgxpool.NewWithConfig(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return store(t, p, nil), p.Reset
	},
	"database/sql": func(t *testing.T, c *pgxpool.Config) (opened, func()) {
		db := stdlib.OpenDB(*c.ConnConfig)
		t.Cleanup(func() { db.Close() })
		s, err := pglease.NewSQL(db, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s, func() { db.SetMaxIdleConns(-1) }
	},
}

// ask sends one request with a time limit of 200 ms. The request must fail because of this limit.
func ask(t *testing.T, a lease.Authority, req lease.Request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := a.Do(ctx, "x", req)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want a timeout", err)
	}
	return err
}

// An error says what the request waited for. It blames the connection string only if there has never
// been a connection.
func TestWhatIsWaitedForIsSaid(t *testing.T) {
	for kind, open := range openers {
		config := func(t *testing.T, url string) *pgxpool.Config {
			c, err := pgxpool.ParseConfig(url)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		silent := func(_ context.Context, _, _ string) (net.Conn, error) {
			server, client := net.Pipe()
			t.Cleanup(func() { server.Close(); client.Close() })
			return client, nil
		}
		t.Run(kind+", a locked row", func(t *testing.T) {
			url := shared.URL(shared.Database(t))
			s, _ := open(t, config(t, url))
			a := s.Authority()
			do(t, a, "x", acquire(idA, time.Minute), 0)
			err := pgx.BeginFunc(t.Context(), pool(t, url), func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), "select from lease for update"); err != nil {
					return err
				}
				return ask(t, a, release(idA))
			})
			says(t, err, "; no answer in time: another transaction has locked the row")
			saysNot(t, err, "connection string")
		})
		t.Run(kind+", a server that has never answered", func(t *testing.T) {
			c := config(t, shared.URL("postgres"))
			c.ConnConfig.DialFunc = silent
			s, _ := open(t, c)
			says(t, ask(t, s.Authority(), renew(idA)), "; no connection: check that the server is up and that the connection string is correct")
		})
		t.Run(kind+", a server that no longer answers, and a paused process", func(t *testing.T) {
			c := config(t, shared.URL(shared.Database(t)))
			dial := c.ConnConfig.DialFunc
			var stopped atomic.Bool
			c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				if stopped.Load() {
					return silent(ctx, network, address)
				}
				return dial(ctx, network, address)
			}
			s, reset := open(t, c)
			do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
			over, cancel := context.WithTimeout(t.Context(), -time.Second)
			defer cancel()
			_, late := s.Load(over, "x") // as after a pause
			stopped.Store(true)
			reset()
			for _, err := range []error{late, ask(t, s.Authority(), renew(idA))} {
				says(t, err, "context deadline exceeded; no connection, though there was one before: check that the server is up. If it is up, it is overloaded, or this process was paused")
				saysNot(t, err, "connection string")
			}
		})
	}
}

// If other users exhaust the pool, the error does not say that the server is down.
func TestABusyPoolIsSaid(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)), func(c *pgxpool.Config) { c.MaxConns = 2 })
	a := store(t, p, nil).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	for range 2 { // by another user of the pool
		conn, err := p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	says(t, ask(t, a, renew(idA)), "all 2 connections of the pool are in use", "a pool of their own")
}

// says fails the test if the text of err lacks one of the words.
func says(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v\ndoes not say %q", err, word)
		}
	}
}

// saysNot fails the test if the text of err contains the words.
func saysNot(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), words) {
		t.Errorf("%v\nsays %q", err, words)
	}
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
	if _, err := pglease.New(nil, nil); lease.CodeOf(err) != lease.ErrOption {
		t.Error(err)
	}
	if _, err := pglease.NewSQL(nil, nil); lease.CodeOf(err) != lease.ErrOption {
		t.Error(err)
	}
}
