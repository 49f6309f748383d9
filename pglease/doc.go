// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] returns an authority,
// which carries out every kind of request. For example, an authority can break a lease with a grace
// period, acquire an infinite lease, or take over a lease of the same owner. For database/sql, use
// [NewSQL]. An SQLStore sends notifications. It cannot receive notifications, so a session that
// waits for a lease polls the server.
//
// # Tables
//
// [Schema] is the SQL that makes the tables. Run it once. If an error says that the tables are
// older than this package, run Schema again. Running it again keeps the leases and their tokens.
// The database must have the encoding UTF8. If its encoding is not UTF8, two drivers can read the
// name of one lease as two different names.
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
// update by hand reads a row and then writes it. If another transaction changes the row between the
// read and the write, the update fails with the SQLSTATE 40001. So an update by hand cannot undo a
// grant. Repeat an update that failed. To avoid failed updates, lock the rows first in the same
// transaction, with "select ... from lease for update".
//
// Do not write to lease_row, the table behind the view. An update that sets only the columns
// "until", "version" or "changed" of lease_row runs no trigger. Without the trigger, the row gets
// no new version, and no waiter of the lease is woken. Do not use "insert ... on conflict
// do update" on the view either, because this statement updates lease_row directly.
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
// The server decides by its own clock whether a lease has expired. The SQL of this package reads
// the server's clock with clock_timestamp() and statement_timestamp(). The clock of a client need
// not show the right time. Only its rate matters: see session.Options. If the server's clock is set
// forward, leases end early. If it is set backward, they last longer.
//
// The time of a change is never before the time of the previous change of the same row. If the
// server's clock is set backward, a load may return an earlier time than the previous load. An
// expired lease can then count as leased until the clock reaches the end of the lease again. But if
// the row was written after the end of the lease, the lease stays expired, because no load returns
// a time before the last write of the row.
//
// The server reads the time of a change while the row is locked. There is one exception: if a
// renewal is sent without a load, the server may read the time of the renewal up to 5 ms before it
// locks the row. If such a renewal waits longer than 5 ms for the lock, the server undoes the
// renewal. The store then renews the lease with a load and a swap, which are two more requests to
// the server. A change becomes visible when it is committed. A load just before the commit of a
// change returns the old row. The server time in the result of such a load may be later than the
// time of the change, by at most 5 ms plus the duration of the commit.
//
// With asynchronous replication, a failover can lose granted leases and their tokens. All writes
// must go to one server. A request to a standby server returns an error. Of all requests, only List
// works on a standby server, where it may return old records.
//
// # Tokens
//
// As long as the database exists, every new token of a lease is newer than all earlier tokens of
// the same name. The epoch of a row never falls. When a row is deleted, its epoch is saved in
// lease_floor. The epoch of a new row is never below the epoch in lease_floor, even if the new row
// is a copy of an old row. Triggers keep the epochs from falling. Do not disable the triggers, and
// do not drop a table.
//
// # Guarding data
//
// A [Mark] guards data in the same database. Use the mark in every transaction that reads or writes
// the guarded data.
//
// # Exchanges
//
// An exchange is one request to the server and its answer. A load is one exchange, and a swap is
// another. An acquire without contention is a load and a swap. A refusal is a load.
//
// A renewal, a change or a release takes one exchange if the lease was acquired through the same
// store. The store computes the new record from the record that it committed last, without a load.
// [Options.Names] is the maximum number of records that the store remembers. The SQL statement
// changes the row only if the row still has the remembered record and the lease has not ended. The
// server counts the new end from its own time. If the row has changed or the lease has ended, the
// store loads the row and computes the record from it, which takes one or two more exchanges. It does
// the same if another transaction has the row locked. If the duration of a lease is not a whole
// number of microseconds, every renewal is a load and a swap.
//
// Before a pgx pool reuses a connection that was idle for a second, it pings the server, which is
// one more exchange. To turn the ping off, set ShouldPing of the pool.
//
// No request depends on the state of its connection, so a pooler may share connections between
// transactions. Behind a pooler that shares connections, pgx must not prepare statements
// (default_query_exec_mode=exec). With lib/pq, set binary_parameters=yes. A [Store] behind a pooler
// also needs [Options.Listen].
//
// # Notifications
//
// A PostgreSQL transaction that sends a notification locks the whole database until its commit is
// on the disk. So this package never sends a notification in the transaction that changes a lease.
// After a release, a break, a take-over by owner or a change to another ID, the store sends the
// notification with a second statement. A notifying statement covers all changes that were
// committed since the previous notifying statement. A release returns only after its notification
// was sent, so that the program can exit right after the release. It returns earlier if its context
// is done. A renewal or an acquire of a free lease sends no notification, because neither lets a
// waiting program acquire the lease. If a process ends before it has sent the notification of a
// change, a [Store] finds the change itself within a second.
//
// # Pools and load
//
// Give leases a pool of their own. In a shared pool, other queries delay renewals, and a lease is
// lost if its renewal is delayed for too long.
//
// A Store sends renewals and notifications before all other requests. A Store reserves a quarter of
// the connections for renewals and notifications, but at least one if the pool has more than one
// connection. While the reserved connections are busy, the Store collects further renewals and
// sends them in one statement.
package pglease
