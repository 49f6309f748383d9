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
//	app=> select name, state, owner, until, epoch from lease;
//	     name     | state  |  owner   |             until             | epoch
//	--------------+--------+----------+-------------------------------+-------
//	 jobs/nightly | leased | worker-1 | 2012-01-26 23:30:33.512307+00 |     7
//
// Rows may be changed and deleted by hand: lease is a view, and triggers make every change
// through it a new version and wake those who watch. A deleted row is a lease that nobody has;
// delete those that are not needed any more. A user of leases needs the permissions select,
// insert and update on lease_row, which is the table behind the view, and select and update on
// lease_floor (and on lease_mark what [Mark] does). Every valid name fits.
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
// A load is one exchange and a swap another, each a statement of its own. An acquire without
// contention is both, and a refusal is a load. A renewal, a change and a release of a lease that
// was taken through the same store are one exchange, which begins with what the store committed
// last ([Options.Names]): the statement changes the row only if it is still that, and has not
// come to its until, and the server counts the new until from its own time. If that is not so,
// or the duration is not of whole microseconds, a load and a swap follow. (A pool of pgx makes
// one more exchange to see whether a connection that was idle for a second is still there, unless
// its ShouldPing says otherwise.)
//
// A renewal through [Store.Authority] notifies nobody, since nobody waits for it: whoever waits
// for the until looks again when it has come.
//
// Nothing depends on the state of a connection, so that a pooler that shares connections between
// transactions may stand between, if pgx is told not to prepare statements
// (default_query_exec_mode=exec) and where to listen ([Options.Listen]).
package pglease
