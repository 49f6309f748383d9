package pglease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease"
	"github.com/fencedlease/lease/session"
)

// A request that starts from a remembered record has the same result as a request that first loads
// the record, even if other clients have changed the record in the meantime.
func TestMemoryIsStale(t *testing.T) {
	url := shared.URL(shared.Database(t))
	p := pool(t, url)
	other := store(t, p, nil).Authority()
	by := func(req lease.Request) func(*testing.T, string) {
		return func(t *testing.T, name string) { do(t, other, name, req, 0) }
	}
	hand := func(sql ...string) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			for _, sql := range sql {
				if _, err := p.Exec(t.Context(), strings.ReplaceAll(sql, "$1", "'"+name+"'")); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
		}
	}
	change := lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}
	const granted = lease.Code(0)
	for what, s := range map[string]struct {
		since                  func(t *testing.T, name string)
		renew, change, release lease.Code
	}{
		"released":              {by(release(idA)), lease.ErrIDMismatch, lease.ErrNotPresent, lease.ErrIDMismatch},
		"renewed":               {by(renew(idA)), granted, granted, granted},
		"acquired again":        {by(acquire(idA, time.Hour)), granted, granted, granted},
		"changed":               {by(change), lease.ErrIDMismatch, granted, lease.ErrIDMismatch},
		"breaking":              {by(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(time.Minute)}), lease.ErrBroken, lease.ErrBreaking, granted},
		"broken":                {by(lease.Request{Action: lease.ActionBreak, Period: lease.Grace(0)}), lease.ErrBroken, lease.ErrNotPresent, granted},
		"taken by another":      {func(t *testing.T, name string) { by(release(idA))(t, name); by(acquire(idB, time.Hour))(t, name) }, lease.ErrIDMismatch, granted, lease.ErrIDMismatch},
		"row deleted":           {hand("delete from lease where name = $1"), lease.ErrIDMismatch, lease.ErrNotPresent, lease.ErrIDMismatch},
		"row deleted, restored": {hand("create table \"of_$1\" as select * from lease where name = $1", "delete from lease where name = $1", "insert into lease table \"of_$1\""), granted, granted, granted},
		"row restored as it was before it was taken": {hand("delete from lease where name = $1", "insert into lease (name) values ($1)"), lease.ErrIDMismatch, lease.ErrNotPresent, lease.ErrIDMismatch},
		"until set by hand":                          {hand("update lease set until = now() - interval '1 s' where name = $1"), granted, lease.ErrNotPresent, granted},
		"made infinite by hand":                      {hand("update lease set duration = 'infinite', until = null where name = $1"), granted, granted, granted},
		"version set by hand":                        {hand("update lease set version = version - 1, id = '" + idB.String() + "' where name = $1"), lease.ErrIDMismatch, granted, lease.ErrIDMismatch},
		"nothing changed by hand":                    {hand("update lease set name = name where name = $1"), granted, granted, granted},
	} {
		t.Run(what, func(t *testing.T) {
			for i, c := range []struct {
				req  lease.Request
				code lease.Code
			}{{renew(idA), s.renew}, {change, s.change}, {release(idA), s.release}} {
				name := fmt.Sprint(strings.ReplaceAll(what, " ", "-"), i)
				began, loaded := store(t, p, nil), store(t, p, nil)
				do(t, began.Authority(), name, acquire(idA, time.Hour), 0)
				s.since(t, name)
				before, err := loaded.Load(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				want, refusal := lease.Step(before.Record, c.req, before.Now)
				if lease.CodeOf(refusal) != c.code {
					t.Fatalf("%v: the machine says %v, this test %v", c.req.Action, refusal, c.code)
				}
				res := do(t, began.Authority(), name, c.req, c.code)
				if got := res.Record; got != want {
					if want.Until = want.Until.Add(res.Now.Sub(before.Now)); got.Until.Sub(want.Until).Abs() < time.Second {
						want.Until = got.Until // by the time that has passed between the two renewals
					}
					if got != want {
						t.Errorf("%v: %v, want %v", c.req.Action, got, want)
					}
				}
			}
		})
	}
}

// For every duration, a renewal stores the same until that the state machine computes from the
// server's time.
func TestRenewalIsExact(t *testing.T) {
	t.Run("one by one", func(t *testing.T) { renewalIsExact(t, func(*pglease.Store) {}) })
	t.Run("together", func(t *testing.T) { renewalIsExact(t, (*pglease.Store).TogetherOnly) })
}

func renewalIsExact(t *testing.T, configure func(*pglease.Store)) {
	p := pool(t, shared.URL(shared.Database(t)))
	ctx := t.Context()
	renewals := 0
	exactly := func(s lease.Store) lease.Store { return exact{s, t, &renewals} }
	whole := func(s lease.Store) lease.Store { return s }
	s := store(t, p, nil)
	configure(s)
	a := s.Through(whole, exactly)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	durations := []time.Duration{time.Hour + time.Microsecond, lease.Infinite - 807, 1 << 53 * time.Microsecond, 1<<53*time.Microsecond + time.Microsecond,
		time.Minute + 1, lease.Infinite - 1, lease.Infinite}
	for range 300 {
		d := time.Minute + time.Duration(r.Int64N(int64(1)<<(36+r.IntN(27))))
		durations = append(durations, d.Truncate([]time.Duration{1, time.Microsecond, time.Second}[r.IntN(3)]))
	}
	for i, d := range durations {
		name := fmt.Sprint("x", i)
		last := do(t, a, name, acquire(idA, d), 0)
		for range 3 {
			sent := time.Now()
			res := do(t, a, name, renew(idA), 0)
			if res.Now.Before(last.Now) || res.Now.Before(sent.Truncate(time.Microsecond)) || res.Now.After(time.Now()) {
				t.Errorf("a renewal between %v and %v says that it is %v, and the one before %v", sent, time.Now(), res.Now, last.Now)
			}
			if res.MinRemaining > d || d != lease.Infinite && (res.MinRemaining < d-time.Second || res.Record.Until.Sub(res.Now) > d) {
				t.Errorf("%v: renewed for %v, and for %v surely", d, res.Record.Until.Sub(res.Now), res.MinRemaining)
			}
			if snap, err := store(t, p, nil).Load(ctx, name); err != nil || snap.Record != res.Record {
				t.Errorf("%v: the row has %v, %v, and the answer was %v", d, snap.Record, err, res.Record)
			}
			last = res
		}
	}
	// An operator rounds the end of a lease. A renewal still uses the granted duration.
	for hand, d := range map[string]time.Duration{"nanos = 0": time.Minute + 1, "nanos = 5": time.Minute} {
		do(t, a, hand, acquire(idA, d), 0)
		if _, err := p.Exec(ctx, "update lease set "+hand+" where name = $1", hand); err != nil {
			t.Fatal(err)
		}
		do(t, a, hand, lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}, 0)
		res := do(t, a, hand, renew(idB), 0)
		if snap, err := store(t, p, nil).Load(ctx, hand); err != nil || snap.Record != res.Record {
			t.Errorf("%s: the row has %v, %v, and the answer was %v", hand, snap.Record, err, res.Record)
		}
	}
	if renewals < 300 {
		t.Errorf("%d renewals in one exchange prove nothing", renewals)
	}
}

// An exact store checks renewals: it must commit the record that the state machine computes for the
// time that the store returns.
type exact struct {
	lease.Store
	t *testing.T
	n *int
}

func (s exact) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	snap, err := s.Store.Swap(ctx, name, old, next)
	if err == nil {
		*s.n++
		if want, refusal := lease.Step(old.Record, renew(old.Record.ID), snap.Now); refusal != nil || snap.Record != want || old.Record.At(snap.Now) != old.Record {
			s.t.Errorf("%v was renewed at %v to %v, want %v, %v", old.Record, snap.Now, snap.Record, want, refusal)
		}
	}
	return snap, err
}

// SPEC S5: a lease that the store remembers as leased may have ended. A renewal of such a lease
// renews the expired lease, and never a lease that another client has written in the meantime.
func TestRenewalAfterTheEnd(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	a, other := store(t, p, nil).Authority(), store(t, p, nil).Authority()
	for name, wants := range map[string]map[lease.Action]lease.Code{
		"expired": {lease.ActionRenew: 0, lease.ActionChange: lease.ErrNotPresent, lease.ActionRelease: 0},
		"used":    {lease.ActionRenew: lease.ErrIDMismatch, lease.ActionChange: lease.ErrNotPresent, lease.ActionRelease: lease.ErrIDMismatch},
	} {
		for action, want := range wants {
			name := fmt.Sprint(name, action)
			do(t, a, name, acquire(idA, time.Millisecond), 0)
			eventually(t, "the end", func(ctx context.Context) error {
				res, err := lease.Inspect(ctx, other, name)
				if err == nil && res.Record.State != lease.Expired {
					err = errors.New("not yet")
				}
				return err
			})
			if want == lease.ErrIDMismatch || name == "used"+lease.ActionChange.String() {
				do(t, other, name, lease.Request{Action: lease.ActionWrite}, 0)
			}
			do(t, a, name, lease.Request{Action: action, ID: idA, Proposed: idB}, want)
		}
	}
}

// SPEC S4, S5, A2: if a renewal waited for a lock of the row until the lease had ended, the renewal
// is not the renewal of a held lease, whether or not the row has changed. If a renewal got the lock
// before the lease ended, the renewal is not lost. Its time is not before the time at which other
// clients saw the old record.
func TestRenewalLooksAtTheTimeUnderTheLock(t *testing.T) {
	for what, s := range map[string]struct {
		locked  string
		commits bool
		wait    time.Duration
		want    lease.Code
	}{
		"past the end, row as it was":           {"select from lease_row for update", false, 2200 * time.Millisecond, 0},
		"past the end, change taken back":       {"update lease set state = 'broken', until = null", false, 2200 * time.Millisecond, 0},
		"past the end, row changed":             {"update lease set state = 'broken', until = null", true, 2200 * time.Millisecond, lease.ErrBroken},
		"before the end, row as it was":         {"select from lease_row for update", false, 0, 0},
		"before the end, change taken back":     {"update lease set state = 'broken', until = null", false, 0, 0},
		"before the end, row changed":           {"update lease set state = 'broken', until = null", true, 0, lease.ErrBroken},
		"before the end, row locked for others": {"select from lease_row for share", true, 0, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var m meter
			p := pool(t, shared.URL(shared.Database(t)), m.trace)
			duration := time.Minute
			if s.wait > 0 {
				duration = 2 * time.Second
			}
			loads := 0
			count := func(s lease.Store) lease.Store { return counting{s, &loads} }
			bare := store(t, p, nil)
			a := bare.Through(count, func(s lease.Store) lease.Store { return s })
			before := do(t, a, "x", acquire(idA, duration), 0)
			loads = 0
			tx, err := p.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.Background())
			if _, err := tx.Exec(t.Context(), s.locked); err != nil {
				t.Fatal(err)
			}
			renewed := make(chan error, 1)
			var res lease.Result
			go func() {
				var err error
				res, err = a.Do(t.Context(), "x", renew(idA))
				renewed <- err
			}()
			waitFor(t, p, "statement_timestamp")
			if _, err := tx.Exec(t.Context(), "select pg_sleep($1)", max(s.wait.Seconds(), 0.05)); err != nil {
				t.Fatal(err)
			}
			var seen lease.Snapshot
			if s.wait == 0 { // a load of an expired lease would wait for the lock
				if seen, err = bare.Load(t.Context(), "x"); err != nil {
					t.Fatal(err)
				}
			}
			if s.commits {
				err = tx.Commit(t.Context())
			} else {
				err = tx.Rollback(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := <-renewed; lease.CodeOf(err) != s.want || s.want == 0 && err != nil {
				t.Errorf("%v, want %v", err, s.want)
			}
			if loads != 1 {
				t.Errorf("%d loads after the renewal in one exchange failed, want 1", loads)
			}
			if want := !s.commits || s.want == 0; m.late.Load() == 1 != want {
				t.Errorf("%d renewals were taken back because of the time", m.late.Load())
			}
			if s.want == 0 && res.Now.Before(seen.Now) {
				t.Errorf("renewed at %v, after a load of the record before it at %v", res.Now, seen.Now)
			}
			if over := !res.Now.Before(before.Record.Until); s.want == 0 && over != (s.wait > 0) {
				t.Errorf("renewed at %v, the end was at %v", res.Now, before.Record.Until)
			}
		})
	}
}

// SPEC S5: if the lease ends while a renewal waits for a lock, the time of the renewal is not
// before the end of the lease, even if the renewal waits for less than 5 ms.
func TestRenewalLocksAtTheEnd(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	a, ctx := store(t, p, nil).Authority(), t.Context()
	renewals := 0
	for range 60 {
		end := do(t, a, "x", acquire(idA, 30*time.Millisecond), 0).Record.Until
		if end.IsZero() {
			continue // on a busy machine the lease can end before the answer arrives
		}
		renewals++
		tx, err := p.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(ctx, "select from lease_row for update"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(end) - 1500*time.Microsecond) // a real engine
		renewed := make(chan lease.Result, 1)
		go func() {
			res, err := a.Do(ctx, "x", renew(idA))
			if err != nil {
				t.Error(err)
			}
			renewed <- res
		}()
		time.Sleep(time.Until(end)) // a real engine
		var locked time.Time
		if err := tx.QueryRow(ctx, "select clock_timestamp()").Scan(&locked); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(ctx); err != nil {
			t.Fatal(err)
		}
		if res := <-renewed; locked.After(end) && res.Now.Before(end) {
			t.Errorf("renewed at %v, when the row was locked until %v, and the lease was over at %v", res.Now, locked, end)
		}
	}
	if renewals == 0 {
		t.Error("every lease was over before the answer to its acquire: that proves nothing")
	}
}

// A counting store counts the calls of Load.
type counting struct {
	lease.Store
	loads *int
}

func (s counting) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	*s.loads++
	return s.Store.Load(ctx, name)
}

// SPEC S8, A2: if a load finds a lease expired, it waits for a renewal that is under way.
func TestLoadWaitsForARenewalUnderWay(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s, ctx := store(t, p, nil), t.Context()
	do(t, s.Authority(), "x", acquire(idA, 300*time.Millisecond), 0)
	tx, err := p.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(ctx, "update lease_row set until = now() + interval '1 h', version = version + 1"); err != nil { // as a renewal does
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "select pg_sleep(0.4)"); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := s.Authority().Do(ctx, "x", acquire(idB, time.Minute))
		refused <- err
	}()
	waitFor(t, p, "for share of l")
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; lease.CodeOf(err) != lease.ErrHeldByOther {
		t.Errorf("taken while a renewal was under way: %v", err)
	}
}

// SPEC S4: the clock of the server was ahead when the row was written.
func TestRenewalsDoNotRunBackward(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	s := store(t, p, nil)
	do(t, s.Authority(), "x", acquire(idA, time.Minute), 0)
	if _, err := p.Exec(t.Context(), "update lease_row set changed = changed + interval '20 s'"); err != nil {
		t.Fatal(err)
	}
	ahead, err := s.Load(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		res := do(t, s.Authority(), "x", renew(idA), 0)
		if res.Now.Before(ahead.Now) || res.Record.Until.Sub(res.Now) != time.Minute {
			t.Errorf("at %v a load, then a renewal at %v until %v", ahead.Now, res.Now, res.Record.Until)
		}
	}
}

// A renewal in one exchange compares the until of the row even if a person has set it in lease_row
// directly, without a new version. The renewal also respects the time in the row if that time is
// ahead of the clock.
func TestRenewalPastTheView(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	for _, set := range []string{"until = until + interval '1 h'", "changed = until"} {
		loads := 0
		count := func(s lease.Store) lease.Store { return counting{s, &loads} }
		a := store(t, p, nil).Through(count, func(s lease.Store) lease.Store { return s })
		do(t, a, set, acquire(idA, time.Hour), 0)
		if _, err := p.Exec(t.Context(), "update lease_row set "+set+" where name = $1", set); err != nil {
			t.Fatal(err)
		}
		loads = 0
		do(t, a, set, renew(idA), 0)
		if loads != 1 {
			t.Errorf("%s: %d loads", set, loads)
		}
	}
}

// SPEC A3: if the answer to a renewal does not come, it is unknown whether the lease was renewed.
// The next request finds out.
func TestUnknownRenewal(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)))
	other := store(t, p, nil).Authority()
	lost := errors.New("the answer is lost")
	change := lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}
	for _, req := range []lease.Request{renew(idA), change, release(idA)} {
		for _, next := range []lease.Request{renew(idA), change, release(idA)} {
			for _, sent := range []bool{false, true} {
				name := fmt.Sprint(req.Action, next.Action, sent)
				fails := false
				lossy := func(s lease.Store) lease.Store {
					return losing{s, func(swap func() error) error {
						if !fails {
							return swap()
						}
						if sent {
							_ = swap()
						}
						return lost
					}}
				}
				a := store(t, p, nil).Through(lossy, lossy)
				do(t, a, name, acquire(idA, time.Hour), 0)
				fails = true
				if _, err := a.Do(t.Context(), name, req); !errors.Is(err, lost) || lease.CodeOf(err) != 0 {
					t.Errorf("%v: %v", req.Action, err)
				}
				fails = false
				before, err := lease.Inspect(t.Context(), other, name)
				if err != nil {
					t.Fatal(err)
				}
				want, refusal := lease.Step(before.Record, next, before.Now)
				res := do(t, a, name, next, lease.CodeOf(refusal))
				if want.Until = res.Record.Until; res.Record != want {
					t.Errorf("%v: %v after %v, want %v", next.Action, res.Record, before.Record, want)
				}
			}
		}
	}
}

// A losing store can lose the answer to a swap.
type losing struct {
	lease.Store
	swap func(func() error) error
}

func (s losing) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (snap lease.Snapshot, err error) {
	if err := s.swap(func() error { snap, err = s.Store.Swap(ctx, name, old, next); return err }); err != nil {
		return lease.Snapshot{}, err
	}
	return snap, nil
}

// SPEC A6: if the context is already done, the store sends no request.
func TestRenewalWithoutContext(t *testing.T) {
	var m meter
	a := store(t, pool(t, shared.URL(shared.Database(t)), m.trace), nil).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n := m.count(func() {
		if _, err := a.Do(ctx, "x", renew(idA)); !errors.Is(err, context.Canceled) || lease.CodeOf(err) != 0 {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%d exchanges", n)
	}
	if n := m.count(func() { do(t, a, "x", renew(idA), 0) }); n != 1 {
		t.Errorf("%d exchanges afterwards: it was forgotten", n)
	}
}

// The number of remembered names is bounded. A request for a forgotten name costs a load.
func TestMemoryIsBounded(t *testing.T) {
	const most = 8
	var m meter
	s := store(t, pool(t, shared.URL(shared.Database(t)), m.trace), &pglease.Options{Names: most})
	a := s.Authority()
	for i := range 3 * most {
		do(t, a, fmt.Sprint("x", i), acquire(idA, time.Minute), 0)
		if want := min(i+1, most); s.Remembered() != want {
			t.Fatalf("after %d names %d are remembered", i+1, s.Remembered())
		}
	}
	again := 0
	for i := range 3 * most {
		again += m.count(func() { do(t, a, fmt.Sprint("x", i), release(idA), 0) })
	}
	if want := 2*3*most - most; again != want || s.Remembered() != 0 {
		t.Errorf("%d exchanges, want %d; %d names remembered of leases that are over", again, want, s.Remembered())
	}
}

// SPEC S7: renewals wake no waiter. A waiter still takes over when the holder stops its renewals.
func TestRenewalsWakeNobody(t *testing.T) {
	url := shared.URL(shared.Database(t))
	s := store(t, pool(t, url), nil)
	holder := s.Authority()
	do(t, holder, "x", acquire(idA, time.Second), 0)
	signals, err := holder.(lease.Watcher).Watch(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	waiter, err := store(t, pool(t, url), nil).Lease("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer waiter.Close(context.Background())
	acquired := make(chan error, 1)
	go func() {
		_, err := session.AcquireWait(t.Context(), waiter, nil)
		acquired <- err
	}()
	var last lease.Result
	for range 20 {
		last = do(t, holder, "x", renew(idA), 0)
		select {
		case <-signals:
			t.Fatal("a renewal was signalled")
		case err := <-acquired:
			t.Fatalf("acquired while it was held: %v", err)
		case <-time.After(100 * time.Millisecond): // a real engine
		}
	}
	if err := <-acquired; err != nil {
		t.Fatal(err)
	}
	t.Logf("taken over %v after the end", time.Since(last.Record.Until))
	if err := waiter.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !within(signals, func(open bool) bool { return open }) {
		t.Error("the release was not signalled")
	}
}

// In a database whose transactions are serializable, a request is a conflict if another request
// overtakes it.
func TestSerializable(t *testing.T) {
	p := pool(t, shared.URL(shared.Database(t)), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	})
	a := store(t, p, nil).Authority()
	do(t, a, "x", acquire(idA, time.Minute), 0)
	do(t, a, "x", renew(idA), 0)
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "update lease set state = 'broken', until = null"); err != nil {
		t.Fatal(err)
	}
	renewed := make(chan error, 1)
	go func() {
		_, err := a.Do(t.Context(), "x", renew(idA))
		renewed <- err
	}()
	waitFor(t, p, "statement_timestamp")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; lease.CodeOf(err) != lease.ErrBroken {
		t.Error(err)
	}
}
