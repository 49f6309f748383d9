package pglease_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/pgserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/pglease"
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
			server := pgserver.NewFor(b, fsync)
			ctx := b.Context()
			p := pool(b, server.URL(server.Database(b, pglease.Tables)))
			a := store(b, p, nil).Authority()
			do(b, a, "x", acquire(idA, time.Hour), 0)
			_, err := p.Exec(ctx, "create table bare (name text primary key, until timestamptz not null, version bigint not null); insert into bare values ('x', now(), 0)")
			must(err)
			version := int64(0)
			shorthand.Benchmark(b, "update", func() {
				_, err := a.Do(ctx, "x", renew(idA))
				must(err)
			}, func() {
				must(p.QueryRow(ctx, "update bare set until = clock_timestamp() + '1 h', version = version + 1 where name = $1 and version = $2 returning version", "x", version).Scan(&version))
			})
		})
	}
}
