// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// The result is a [lease.Lease] like any other. [Store.Authority] is for everything else: breaking
// with grace, changing, infinite leases, taking over by owner. Over database/sql, use [NewSQL]. An
// SQLStore notifies others but cannot listen, so its waiters poll.
//
// # Tables
//
// [Schema] is the SQL that makes the tables. Run it once. Run it again with a newer version of this
// package if an error says that the tables are older: it keeps the leases and their tokens. The
// database must have the encoding UTF8, because in another one two drivers can read one name as two
// leases.
//
// A lease is a row that psql shows:
//
//	app=> select name, state, owner, until, epoch from lease;
//	     name     | state  |  owner   |             until             | epoch
//	--------------+--------+----------+-------------------------------+-------
//	 jobs/nightly | leased | worker-1 | 2012-01-26 23:30:33.512307+00 |     7
//
// Rows may be changed and deleted by hand. "lease" is a view. Its triggers give every insert,
// update and delete a new version, and wake waiters. An update fails with the SQLSTATE 40001 if the
// row has changed since it was read, so that it cannot undo a grant. Then repeat it, or lock the
// rows first in a transaction, with "select ... from lease for update".
//
// Do not write to the table behind the view, lease_row. There, a change of only until, version or
// changed makes no new version and wakes no waiter. An insert with "on conflict do update" is such
// a write too.
//
// To free a lease, delete its row. Delete the rows that are not needed any more. Every valid name
// can be stored.
//
// A program that uses leases needs these permissions. Those on lease_mark are only for [Mark]:
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
// The server decides by its own clock, clock_timestamp(). The time of a client's clock does not
// matter, only its rate: see session.Options. If the server's clock is set forward, leases end
// early. If it is set backward, they last longer.
//
// The time of a row never goes back from one change to the next. The time of a load can be earlier
// than that of the load before, if the clock was set backward. Then a lease that was seen to be
// over, and was not written since, counts as leased until the clock reaches its end again.
//
// The time of a change is read while its row is locked. A renewal in one exchange reads it up to 5
// ms earlier. If more time passes before it has the lock, it is undone and made in two exchanges. A
// change becomes visible when it is committed. A load just before that shows the old row, at a time
// that may be later than that of the change by the length of the commit and those 5 ms.
//
// Writes must go to one server. A standby is refused. With asynchronous replication, a failover can
// lose leases that were granted, and their tokens.
//
// # Tokens
//
// A token is newer than every token that was granted before under the name, for as long as the
// database lives. The epoch of a row never falls. A deleted row leaves its epoch in lease_floor,
// and no row that is inserted counts less than that, even one from an old copy. Triggers ensure
// this, so do not disable them, and do not drop a table.
//
// # Guarding data
//
// Data in the same database is best guarded in its own transactions: see [Mark].
//
// # Exchanges
//
// A load is one exchange, and a swap is another, each with one statement. An acquire without
// contention is a load and a swap. A refusal is a load.
//
// A renewal, a change and a release are one exchange if the lease was taken through the same store.
// They begin with what the store committed last ([Options.Names]). The statement changes the row
// only if it is still the same and has not come to its end, and the server counts the new end from
// its own time. A load and a swap follow if the row has changed, if another transaction has locked
// it, or if the duration is not a multiple of a microsecond.
//
// The pool of pgx makes one more exchange if a connection was idle for a second, to see whether it
// is still there. Its setting ShouldPing turns that off.
//
// Nothing depends on the state of a connection. So a pooler may share connections between
// transactions. Then pgx must not prepare statements (default_query_exec_mode=exec) and needs
// [Options.Listen], and lib/pq needs binary_parameters=yes.
//
// # Notifications
//
// A commit that notifies locks the whole database until it is on the disk. So no change that this
// package makes notifies in its own commit. After a release, a break or a change to another ID, the
// store sends a second statement that notifies, one for all changes that were committed meanwhile.
// The release returns when that was sent, so that a program can end after it. An acquire and a
// renewal do not notify, because no waiter can act on them. If a process ends between its commit
// and the notification, waiters are signalled within a second: see [Store.Watch].
//
// # Pools and load
//
// Give leases a pool of their own. Other queries in the same pool delay renewals, and a renewal
// that is delayed for too long loses its lease.
//
// A Store sends renewals before everything else. It keeps a quarter of the connections for them,
// and at least one if the pool has more than one. While all of those are busy with renewals, the
// next renewals are gathered and sent in one statement.
package pglease
