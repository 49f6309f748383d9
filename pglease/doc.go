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
// Rows may be changed and deleted by hand: lease is a view, and triggers make every update, insert
// and delete of it a new version and wake those who watch. An update fails, with the SQLSTATE
// 40001, if the row was changed between its being read and being locked: nothing that was granted
// meanwhile is undone. Try it again, or lock the rows first, in a transaction, with select from
// lease for update. Past the view, on lease_row, and so by an insert with on conflict do update,
// a change of nothing but until, version or changed makes no version and wakes nobody: do not.
//
// A deleted row is a lease that nobody has; delete those that are not needed any more. A user of
// leases needs the permissions select, insert and update on lease_row, which is the table behind
// the view, and select and update on lease_floor (and on lease_mark what [Mark] does). Every valid
// name fits.
//
// # Time
//
// The server decides by its own clock, clock_timestamp(). The clocks of clients do not matter,
// only their rates, see session.Options. If the clock of the server is set forward, leases end
// early; if it is set backward they last longer. No change of a row has an earlier time than the
// one before it, but a load may have one than an earlier load: a lease that was seen to be over,
// and has not been written since, is then leased again until the clock comes to its end once more.
//
// The time of a change is read under the lock of its row, that of a renewal in one exchange no
// more than 5 ms before, or it is taken back and begun anew. The change is seen once it has been
// committed. A load meanwhile shows the row as it was, which is not over, and it may be at a time
// that is later by what the commit takes, and those 5 ms.
//
// The database must be one that is written to in one place: a standby is refused, and with
// asynchronous replication a failover can lose leases that were granted, and their tokens.
//
// # Tokens
//
// A token is newer than every one granted before under the name, for as long as the database
// lives: an epoch never falls in a row, a deleted row leaves its epoch in lease_floor, where it does
// not fall either, and a row that is inserted, from an old copy too, counts no less than that.
// Triggers see to it, so that who disables or drops them, or a table, is on his own.
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
// come to its until, and the server counts the new until from its own time. If that is not so, or
// somebody kept the row locked, or the duration is not of whole microseconds, a load and a swap
// follow. (A pool of pgx makes one more exchange to see whether a connection that was idle for a
// second is still there, unless its ShouldPing says otherwise.)
//
// A renewal through [Store.Authority] notifies nobody, since nobody waits for it: whoever waits
// for the until looks again when it has come.
//
// Nothing depends on the state of a connection, so that a pooler that shares connections between
// transactions may stand between, if pgx is told not to prepare statements
// (default_query_exec_mode=exec) and where to listen ([Options.Listen]).
package pglease
