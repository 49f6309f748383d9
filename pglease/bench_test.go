package pglease_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/pglease/internal/pgserver"
	"github.com/fencedlease/lease/session"
)

// compare measures ours and the peer's in turns, so that both meet the same machine, and reports
// the median of each and their ratio.
func compare(b *testing.B, peer string, ours, theirs func()) {
	var a, z []time.Duration
	for b.Loop() {
		began := time.Now()
		ours()
		middle := time.Now()
		theirs()
		a, z = append(a, middle.Sub(began)), append(z, time.Since(middle))
	}
	slices.Sort(a)
	slices.Sort(z)
	our, their := a[len(a)/2], z[len(z)/2]
	b.ReportMetric(float64(our.Microseconds()), "us-ours")
	b.ReportMetric(float64(their.Microseconds()), "us-"+peer)
	b.ReportMetric(float64(our)/float64(their), "x-"+peer)
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

// servers are one that writes nothing to the disk, which shows what a lease costs besides, and
// one as it is used.
func servers(b *testing.B, f func(b *testing.B, url string)) {
	b.Run("fsync=off", func(b *testing.B) { f(b, shared.URL(shared.Database(b))) })
	b.Run("fsync=on", func(b *testing.B) {
		dir, err := os.MkdirTemp("", "pglease")
		must(b, err)
		defer os.RemoveAll(dir)
		s, err := pgserver.New(dir, "fsync=on")
		must(b, err)
		defer s.Stop()
		f(b, s.URL(s.Database(b)))
	})
}

// bare makes a table and returns an UPDATE of a row in it, that compares and swaps, and no more.
func bare(b *testing.B, p *pgxpool.Pool) func() {
	ctx := context.Background()
	_, err := p.Exec(ctx, "create table bare (name text primary key, until timestamptz not null, version bigint not null); insert into bare values ('x', now(), 0)")
	must(b, err)
	version := int64(0)
	return func() {
		must(b, p.QueryRow(ctx, "update bare set until = clock_timestamp() + '1 h', version = version + 1 where name = $1 and version = $2 returning version", "x", version).Scan(&version))
	}
}

// BenchmarkRenew is a renewal against one bare UPDATE.
func BenchmarkRenew(b *testing.B) {
	servers(b, func(b *testing.B, url string) {
		ctx := context.Background()
		p := pool(b, url)
		a := store(b, p, nil).Authority()
		do(b, a, "x", acquire(idA, time.Hour), 0)
		compare(b, "update", func() {
			_, err := a.Do(ctx, "x", renew(idA))
			must(b, err)
		}, bare(b, p))
	})
}

// BenchmarkTakeAndGive is an acquire and a release, which write twice, against two bare UPDATEs.
func BenchmarkTakeAndGive(b *testing.B) {
	servers(b, func(b *testing.B, url string) {
		ctx := context.Background()
		p := pool(b, url)
		a := store(b, p, nil).Authority()
		update := bare(b, p)
		compare(b, "updates", func() {
			_, err := a.Do(ctx, "x", acquire(idA, time.Hour))
			must(b, err)
			_, err = a.Do(ctx, "x", release(idA))
			must(b, err)
		}, func() { update(); update() })
	})
}

// BenchmarkAcquireRelease is against an advisory lock, which is held by a connection and kept in
// memory.
func BenchmarkAcquireRelease(b *testing.B) {
	servers(b, func(b *testing.B, url string) {
		ctx := context.Background()
		l, err := store(b, pool(b, url), nil).Lease("x", nil)
		must(b, err)
		defer l.Close(ctx)
		conn, err := pgx.Connect(ctx, url)
		must(b, err)
		defer conn.Close(ctx)
		compare(b, "advisory", func() {
			ok, err := l.Acquire(ctx)
			must(b, err)
			if !ok {
				b.Fatal("not acquired")
			}
			must(b, l.Release(ctx))
		}, func() {
			_, err := conn.Exec(ctx, "select pg_advisory_lock(42)")
			must(b, err)
			_, err = conn.Exec(ctx, "select pg_advisory_unlock(42)")
			must(b, err)
		})
	})
}

// BenchmarkTakeOver is the time from the crash of a holder to the grant of a contender who waits:
// with a lease of two seconds, and with an advisory lock whose connection ends at once because the
// machine of its holder is still there. Run it with -benchtime 5x.
func BenchmarkTakeOver(b *testing.B) {
	ctx := context.Background()
	url := shared.URL(shared.Database(b))
	p := pool(b, url)
	compare(b, "advisory", func() {
		a := store(b, p, nil).Authority()
		_, err := a.Do(ctx, "x", lease.Request{Action: lease.ActionAcquire, Proposed: idA, Duration: 2 * time.Second})
		must(b, err)
		l, err := store(b, p, nil).Lease("x", nil)
		must(b, err)
		_, err = session.AcquireWait(ctx, l, nil)
		must(b, err)
		must(b, l.Close(ctx))
	}, func() {
		holder, err := pgx.Connect(ctx, url)
		must(b, err)
		_, err = holder.Exec(ctx, "select pg_advisory_lock(42)")
		must(b, err)
		holder.PgConn().Conn().Close()
		waiter, err := pgx.Connect(ctx, url)
		must(b, err)
		_, err = waiter.Exec(ctx, "select pg_advisory_lock(42)")
		must(b, err)
		must(b, waiter.Close(ctx))
	})
}
