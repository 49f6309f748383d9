// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// From there on it is any other [lease.Lease]. All that [lease.Authority] offers is there:
// breaking with grace, changing, infinite leases, taking over by owner and fencing tokens. Over
// database/sql it is [NewSQL]. An SQLStore notifies others but cannot listen, so its waiters poll.
//
// # Tables
//
// [Schema] is the SQL that makes them. Run it once, and again with a newer version of this package
// if an error says that the tables are older: it keeps the leases and their tokens. The database must
// have the encoding UTF8. In another one, two drivers read one name as two leases. A lease is a row
// that psql shows:
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
// A deleted row is a lease that nobody has; delete those that are not needed any more. Every valid
// name fits. A user of leases needs these permissions on the table behind the view, and those on
// lease_mark only for [Mark]:
//
//	grant select, insert, update on lease_row, lease_mark to worker;
//	grant select, update on lease_floor to worker;
//
// An operator who lists leases and breaks them needs these:
//
//	grant select, update on lease_row, lease to operator;
//	grant select on lease_floor to operator;
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
// Nothing depends on the state of a connection, so that a pooler that shares connections between
// transactions may stand between. Then pgx must not prepare statements
// (default_query_exec_mode=exec) and must know where to listen ([Options.Listen]), and lib/pq needs
// binary_parameters=yes.
//
// # Notifications
//
// A commit that notifies takes a lock of the whole database until it is on the disk. So no change of
// a lease notifies in its own commit, unless it is made by hand. A release, a break and a change to
// another ID are followed by a statement that notifies, for all those that were committed meanwhile.
// The release returns when that was sent, so that a program may end after it. An acquire and a
// renewal do not notify, since no waiter can use that. If a process ends between its commit and the
// notification, waiters are signalled within a second: see [Store.Watch].
//
// # Pools and load
//
// Give leases a pool of their own. What else uses the pool delays renewals, and a renewal that is
// delayed for long loses its lease. A Store lets renewals through before everything else, and keeps
// a quarter of the connections for them, at least one unless the pool has only one. While as many
// renewals are under way as that, the next ones are gathered and sent in one statement.
package pglease
