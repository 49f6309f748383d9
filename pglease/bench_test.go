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

// compare measures the functions ours and theirs in turns, so that the load of the machine is the
// same for both. It reports the median of each function and the ratio of the medians.
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

// servers calls f with two servers. One server writes nothing to the disk, so that the cost of a
// lease without the disk is visible. The second server has the settings of a server in use.
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

// bare makes a table, and returns a function that only compares and swaps a row of the table with
// one UPDATE.
func bare(b *testing.B, p *pgxpool.Pool) func() {
	ctx := context.Background()
	_, err := p.Exec(ctx, "create table bare (name text primary key, until timestamptz not null, version bigint not null); insert into bare values ('x', now(), 0)")
	must(b, err)
	version := int64(0)
	return func() {
		must(b, p.QueryRow(ctx, "update bare set until = clock_timestamp() + '1 h', version = version + 1 where name = $1 and version = $2 returning version", "x", version).Scan(&version))
	}
}

// BenchmarkRenew compares a renewal with one bare UPDATE.
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

// BenchmarkTakeAndGive compares an acquire and a release, which write twice, with two bare UPDATEs.
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

// BenchmarkAcquireRelease compares an acquire and a release with an advisory lock, which a
// connection holds and the server keeps in memory.
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

// BenchmarkTakeOver measures the time from the crash of a holder to the grant of a waiting
// contender. It compares a lease of two seconds with an advisory lock. The connection of the
// advisory lock ends at once, because the machine of its holder is still running. Run the benchmark
// with -benchtime 5x.
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
