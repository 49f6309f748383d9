// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// From there on it is any other [lease.Lease]. All that [lease.Authority] offers is there:
// breaking with grace, changing, infinite leases, taking over by owner and fencing tokens. Over
// database/sql it is [NewSQL]; there are no notifications then, and whoever waits, polls.
//
// # Tables
//
// [Schema] is the SQL that makes them, to be run once. A lease is a row that psql shows:
//
//	app=> select name, record from lease;
//	     name     |                       record
//	--------------+-----------------------------------------------------
//	 jobs/nightly | {"state":"leased","id":"1f81...","owner":"worker-1",
//	              |  "duration":"15s","until":"2012-01-26T23:30:33Z","epoch":7}
//
// Rows may be changed and deleted by hand: triggers make every change a new version and wake
// those who watch. A deleted row is a lease that nobody has; delete those that are not needed
// any more. A user of leases needs the permissions select, insert and update on lease, and
// select and update on lease_floor (and on lease_mark what [Mark] does). Every valid name fits.
//
// # Time
//
// The server decides by its own clock, clock_timestamp(). The clocks of clients do not matter,
// only their rates, see session.Options. If the clock of the server is set forward, leases end
// early; if it is set backward they last longer, and for no row does time run backward. The
// database must be one that is written to in one place: a standby is refused, and with
// asynchronous replication a failover can lose leases that were granted, and their tokens.
//
// # Tokens
//
// A token is newer than every one granted before under the name, for as long as the database
// lives: an epoch never falls in a row, a deleted row leaves its epoch in lease_floor, and a row
// that is inserted, from an old copy too, counts no less than that.
//
// # Guarding data
//
// Data in the same database is best protected in its own transactions: see [Mark].
//
// # Exchanges
//
// A load is one exchange and a swap another, each a statement of its own. So a renewal, a
// release and an uncontended acquire are two, and a refusal is one. Nothing depends on the
// state of a connection, so that a pooler that shares connections between transactions may
// stand between, if pgx is told not to prepare statements (default_query_exec_mode=exec) and
// where to listen ([Options.Listen]).
package pglease
