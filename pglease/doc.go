// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] returns an authority
// for all other requests, such as breaking a lease with a grace period, acquiring an infinite
// lease, or taking over by owner. For database/sql, use [NewSQL]. An SQLStore sends notifications.
// It cannot receive notifications, so its waiters poll.
//
// # Tables
//
// [Schema] is the SQL that makes the tables. Run it once. If an error says that the tables are
// older than this package, run Schema again. Running it again keeps the leases and their tokens.
// The database must have the encoding UTF8. In any other encoding, two drivers can read the same
// name as two different names.
//
// A lease is a row that psql shows:
//
//	app=> select name, state, owner, until, epoch from lease;
//	     name     | state  |  owner   |             until             | epoch
//	--------------+--------+----------+-------------------------------+-------
//	 jobs/nightly | leased | worker-1 | 2012-01-26 23:30:33.512307+00 |     7
//
// You may change and delete rows by hand through the view "lease". Triggers give a row a new
// version when it is inserted or updated, and wake waiters when a row is updated or deleted. An
// update by hand fails with the SQLSTATE 40001 if the row has changed since the update read it. So
// an update by hand cannot undo a grant. Repeat an update that failed. To avoid failed updates,
// lock the rows first in the same transaction, with "select ... from lease for update".
//
// Do not write to lease_row, the table behind the view. If a write to lease_row changes only the
// columns "until", "version" or "changed", the row gets no new version and no waiter wakes up. An
// insert into the view with "on conflict do update" also writes directly to lease_row.
//
// To free a lease, delete its row. You may also delete rows that are not needed any more. Every
// valid name can be stored.
//
// A program that uses leases needs these permissions. It needs those on lease_mark only for [Mark]:
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
// The server decides by its own clock, clock_timestamp(), whether a lease has expired. The clock of
// a client need not show the right time. Only its rate matters: see session.Options. If the
// server's clock is set forward, leases end early. If it is set backward, they last longer.
//
// The time of a change is never before the time of the previous change of the same row. If the
// server's clock is set backward, a load may return an earlier time than the previous load. An
// expired lease can then count as leased until the clock reaches the end of the lease again. But a
// lease stays expired once its row was written after the end, because no later load returns a time
// before that write.
//
// The time of a change is read while its row is locked. A renewal in one exchange reads the time up
// to 5 ms before it locks the row. If a renewal waits longer than 5 ms for the lock of its row, the
// renewal is undone and repeated in two exchanges. A change becomes visible when it is committed. A
// load just before the commit of a change returns the old row. The time of such a load may be later
// than the time of the change, by at most the duration of the commit plus 5 ms.
//
// With asynchronous replication, a failover can lose granted leases and their tokens. All writes
// must go to one server. A request to a standby server returns an error.
//
// # Tokens
//
// A token is newer than every token that was granted before under the same name, as long as the
// database exists. The epoch of a row never falls. When a row is deleted, its epoch is saved in
// lease_floor. A new row starts with at least the epoch in lease_floor, even if the row is copied
// from an old row. Triggers keep the epochs from falling. Do not disable the triggers, and do not
// drop a table.
//
// # Guarding data
//
// A [Mark] guards data in the same database. Use the mark in every transaction that reads or writes
// the data.
//
// # Exchanges
//
// An exchange is one request to the server and its answer. A load is one exchange, and a swap is
// another. An acquire without contention is a load and a swap. A refusal is a load.
//
// A renewal, a change or a release is one exchange if the lease was acquired through the same
// store. The store computes the new record from the record that it committed last, without a load.
// [Options.Names] is the maximum number of records that the store remembers. The statement changes
// the row only if the row is unchanged and the lease has not reached its end. The server counts the
// new end from its own time. If the row has changed, or if another transaction has locked it, the
// store uses a load and a swap, which are two exchanges. The store also uses a load and a swap if
// the duration is not a whole number of microseconds.
//
// A pgx pool pings the server over a connection that was idle for a second, which is one more
// exchange. To turn the ping off, set ShouldPing of the pool.
//
// No request depends on the state of its connection, so a pooler may share connections between
// transactions. Behind a pooler that shares connections, pgx must not prepare statements
// (default_query_exec_mode=exec). With lib/pq, set binary_parameters=yes. A [Store] behind a pooler
// also needs [Options.Listen].
//
// # Notifications
//
// A transaction that notifies locks the whole database until its commit is on the disk. So this
// package never notifies in the transaction that changes a lease. After a release, a break or a
// change to another ID, the store sends a second statement that notifies. One notifying statement
// covers all changes that were committed since the previous one. A release returns only after its
// notification was sent, so that the program can exit right after the release. An acquire and a
// renewal do not notify, because no waiter can act on them. If a process ends before it has sent a
// notification, a [Store] finds the change itself within a second.
//
// # Pools and load
//
// Give leases a pool of their own. In a shared pool, other queries delay renewals, and a lease is
// lost if its renewal is delayed for too long.
//
// A Store sends renewals before all other requests. A Store reserves a quarter of the connections
// for renewals, but at least one connection if the pool has more than one. While the reserved
// connections are busy, the Store collects further renewals and sends them in one statement.
package pglease
