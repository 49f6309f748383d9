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
// [NewSQL]. An SQLStore sends notifications but cannot receive them. A session that waits for a
// lease through an SQLStore polls the server.
//
// # Tables
//
// [Migrate] makes the tables, and every process may call it when it starts. [Tables] is the same as SQL,
// for psql or for a tool that runs migrations:
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//
// If an error says that the tables are older than this package, do so again, which keeps the leases and
// their tokens. The database must have the encoding UTF8, because in another one two drivers could read
// the name of one lease as two different names.
//
// Each lease is a row, which psql can show:
//
//	app=> select name, state, owner, until, epoch from lease;
//	     name     | state  |  owner   |             until             | epoch
//	--------------+--------+----------+-------------------------------+-------
//	 jobs/nightly | leased | worker-1 | 2012-01-26 23:30:33.512307+00 |     7
//
// To free a lease, call lease_break. Its holder learns of it at its next renewal, or at once with
// session.Options.Watch, and has the grace to stop its work:
//
//	app=> select lease_break('jobs/nightly', '30 s');
//
// [lease.Break] says how long a grace should be. Without a grace, the lease ends when it would end
// without a renewal, and an infinite lease at once. You can also delete rows, for example of names that
// are not needed any more. The deletion frees the lease at once, while its holder still believes that it
// has the lease until its next renewal is refused. The holder of a lease of 15 s believes so for up to
// 5 s and, if requests are slow or fail, for up to its whole duration. A Watch of the holder ends that
// at once.
//
// A change by hand makes a new version of the row and wakes its waiters. While a transaction that has
// locked rows is open, even by "select for update", no renewal of their leases succeeds and their
// holders lose them, so commit at once. A row can store every valid name of a lease.
//
// A program that uses leases needs these permissions. The permissions on lease_mark are needed only
// for [Mark]:
//
//	grant select, insert, update on lease_row, lease_mark to worker;
//	grant select, update on lease_floor to worker;
//
// An operator who lists leases and breaks them needs these permissions:
//
//	grant select, update on lease_row, lease to operator;
//	grant select on lease_floor to operator;
//
// # Time
//
// The server decides by its own clock whether a lease has expired. The SQL of this package reads
// the server's clock with clock_timestamp() and statement_timestamp(). The clock of a client need
// not show the right time, but it must run at the right rate: see session.Options. If the server's
// clock is set forward, leases end early. If the server's clock is set backward, leases last longer.
//
// The time of a change is never before the time of the previous change of the same row. If the
// server's clock is set backward, [Store.Load] can return an earlier time than the previous Load
// returned. A lease that one Load has reported as expired can therefore be leased in a later Load,
// until the clock reaches the end of the lease. However, Load never returns a time before the last
// write of the row. If the row of a lease was last written after the end of the lease, Load
// therefore always reports the lease as expired.
//
// If the clock is set backward by more than a second while leases are held, the Store logs by how much
// the clock is behind the records. A lease that is renewed is not affected. If its holder crashes, the
// clock reaches the end of the lease late. So a Store that has seen a record unchanged for as long as
// the lease had left, by its own clock, reports the lease as expired, and a waiter gets it. Correct the
// clock of the server soon. If it is set forward while leases are held, they end early.
//
// The server reads the time of a change while the row is locked. There is one exception: for a
// renewal that takes a single request, the server can read the time up to 5 ms before it locks the
// row. If the renewal waits longer than 5 ms for the lock, the renewal fails and changes nothing.
// To repeat a renewal that has failed in this way, the store sends two more requests: a Load and a
// Swap. A change becomes visible when it is committed. A Load just before the commit of a change
// returns the old row. The server time that this Load returns can be later than the time of the
// change, by at most 5 ms plus the duration of the commit.
//
// With asynchronous replication, a failover can lose granted leases and their tokens. All writes
// must go to one server. Every request to a standby or a read-only server returns an error. A server
// that has become read-only can keep its connections open. The store then closes them, and the refused
// request is sent again over a new connection, which the connection string or a proxy must lead to the
// right server.
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
// An exchange is one request to the server and its answer. [Store.Load] takes one exchange, and so
// does [Store.Swap]. An acquire without contention takes two exchanges: a Load and a Swap. A
// refused request takes one exchange, which is a Load.
//
// A renewal, a change or a release takes one exchange if the lease was acquired through the same
// store. The store sends no Load, because it computes the new record from the last record that it
// committed. [Options.Names] is the maximum number of records that the store remembers. The SQL
// statement changes the row only if the row still has the remembered record and the lease has not
// ended. The server adds the duration to its own time to get the new end of the lease. If the row
// has changed or the lease has ended, the store loads the row and computes the new record from the
// loaded one. If another transaction has locked the row during a renewal, the store loads the row.
// A request that has to load the row takes one or two more exchanges. If the duration of a lease is
// not a whole number of microseconds, every renewal takes two exchanges: a Load and a Swap.
//
// A pgx pool pings the server before it reuses a connection that was idle for more than a second.
// The ping is one more exchange. To turn the ping off, set ShouldPing of the pool.
//
// No request depends on the state of its connection, so a pooler can share connections between
// transactions. Behind a pooler that shares connections, pgx must not prepare statements
// (default_query_exec_mode=exec). With lib/pq, set binary_parameters=yes. A [Store] behind a pooler
// also needs [Options.Listen].
//
// # Notifications
//
// A PostgreSQL transaction that sends a notification locks the whole database until its commit is
// on the disk. To avoid this lock, the package never sends a notification in the transaction that
// changes a lease. After a release, a break, a take-over or a change to another ID, the store
// sends the notification with a second statement. A notifying statement covers all changes that were
// committed since the previous notifying statement. A release returns only after its notification
// was sent, so that the program can exit right after the release. If the context of
// the release is done, the release returns without waiting for its notification. A renewal or an
// acquire of a free lease sends no notification, because neither lets a waiting program acquire the
// lease. If a process ends before it has sent the notification of a change, a [Store] finds the
// change itself within a second.
//
// # Pools and load
//
// Give leases a pool of their own. In a shared pool, other queries delay renewals, and a lease is
// lost if its renewal is delayed for too long.
//
// If the number of connections is limited, a Store sends renewals and notifications before all
// other requests. The Store reserves a quarter of the connections for renewals and notifications.
// If there are two or three connections, the Store reserves one. If there is only one connection,
// the Store reserves none. While the reserved connections are busy, the Store collects new renewals
// and sends them in one statement. How to set the limit depends on the driver:
//
//   - A pgx pool always has a limit. Set pool_max_conns to 4 or more.
//   - For database/sql with the driver of pgx, call SetMaxOpenConns with 4 or more before [NewSQL].
//   - For database/sql with lib/pq, set no limit. Without a limit, renewals have no priority over
//     other requests, and the Store reserves no connections for renewals. A burst of requests opens
//     a connection for each request.
//
// If a connection dies silently, pgx closes it when the context of the request ends. lib/pq keeps
// the connection in use until the operating system closes it, which can take minutes. With lib/pq
// and a limit on the number of connections, dead connections can therefore use up the whole pool.
package pglease
