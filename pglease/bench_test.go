package pglease_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fencedlease/lease/pglease/internal/pgserver"
)

// BenchmarkRenew compares a renewal with one bare UPDATE, on a server that writes nothing to the disk and
// on one that syncs every commit. It measures both in turns, so that the load of the machine is the same.
func BenchmarkRenew(b *testing.B) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, fsync := range []string{"fsync=off", "fsync=on"} {
		b.Run(fsync, func(b *testing.B) {
			dir, err := os.MkdirTemp("", "pglease")
			must(err)
			defer os.RemoveAll(dir)
			server, err := pgserver.New(dir, fsync)
			must(err)
			defer server.Stop()
			ctx := b.Context()
			p := pool(b, server.URL(server.Database(b)))
			a := store(b, p, nil).Authority()
			do(b, a, "x", acquire(idA, time.Hour), 0)
			_, err = p.Exec(ctx, "create table bare (name text primary key, until timestamptz not null, version bigint not null); insert into bare values ('x', now(), 0)")
			must(err)
			version := int64(0)
			var ours, theirs []time.Duration
			for b.Loop() {
				began := time.Now()
				_, err := a.Do(ctx, "x", renew(idA))
				must(err)
				middle := time.Now()
				must(p.QueryRow(ctx, "update bare set until = clock_timestamp() + '1 h', version = version + 1 where name = $1 and version = $2 returning version", "x", version).Scan(&version))
				ours, theirs = append(ours, middle.Sub(began)), append(theirs, time.Since(middle))
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			our, their := ours[len(ours)/2], theirs[len(theirs)/2]
			b.ReportMetric(float64(our.Microseconds()), "us-ours")
			b.ReportMetric(float64(their.Microseconds()), "us-update")
			b.ReportMetric(float64(our)/float64(their), "x-update")
		})
	}
}
