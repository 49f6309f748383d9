// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] is for everything
// else, such as breaking a lease with a grace period, infinite leases, and taking over by owner.
// For database/sql, use [NewSQL]. An SQLStore sends notifications but cannot receive them, so its
// waiters poll.
//
// # Tables
//
// [Schema] is the SQL that makes the tables. Run it once. If an error says that the tables are
// older than this package, run Schema again. Running it again keeps the leases and their tokens.
// The database must have the encoding UTF8. In any other encoding, two drivers can read one name as
// two leases.
//
// A lease is a row that psql shows:
//
//	app=> select name, state, owner, until, epoch from lease;
//	     name     | state  |  owner   |             until             | epoch
//	--------------+--------+----------+-------------------------------+-------
//	 jobs/nightly | leased | worker-1 | 2012-01-26 23:30:33.512307+00 |     7
//
// You may change and delete rows by hand through the view "lease". Triggers give a row a new
// version after every insert and update, and wake waiters after every update and delete. An update
// fails with the SQLSTATE 40001 if the row has changed since it was read. So an update by hand
// cannot undo a grant. Repeat an update that failed. To avoid such failures, lock the rows first in
// the same transaction, with "select ... from lease for update".
//
// Do not write to lease_row, the table behind the view. If such a write changes only until, version
// or changed, the row gets no new version and no waiter wakes up. An insert into the view with "on
// conflict do update" also writes directly to lease_row.
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
// The server decides by its own clock, clock_timestamp(). The clock of a client need not show the
// right time. Only its rate matters: see session.Options. If the server's clock is set forward,
// leases end early. If it is set backward, they last longer.
//
// The time of a row never goes back from one change to the next. If the clock is set backward, a
// load may return an earlier time than the load before it. As a result, an expired lease can count
// as leased for a while, until the clock reaches the end of the lease again. A write to the row
// prevents this, because no later load returns a time before that write.
//
// The time of a change is read while its row is locked. A renewal in one exchange reads the time up
// to 5 ms before it locks the row. If more time passes, the renewal is undone and repeated in two
// exchanges. A change becomes visible when it is committed. A load just before the commit returns
// the old row. The time that such a load returns may be later than the time of the change. The
// difference is at most the duration of the commit plus 5 ms.
//
// All writes must go to one server. A request to a standby server returns an error. With
// asynchronous replication, a failover can lose granted leases and their tokens.
//
// # Tokens
//
// A token is newer than every token that was granted before under the same name, for as long as the
// database exists. The epoch of a row never falls. When a row is deleted, its epoch is saved in
// lease_floor. A new row starts with at least that epoch, even if it is copied from an old row.
// Triggers ensure this, so do not disable them, and do not drop a table.
//
// # Guarding data
//
// To guard data in the same database, use [Mark] in the transactions that read or write the data.
//
// # Exchanges
//
// An exchange is one request to the server and its answer. A load is one exchange, and a swap is
// another. An acquire without contention is a load and a swap. A refusal is a load.
//
// A renewal, a change or a release is one exchange if the lease was acquired through the same
// store. The store then computes the new record from the one that it committed last, without a
// load. [Options.Names] bounds the number of records that the store remembers. The statement
// changes the row only if the row is unchanged and has not reached its end. The server counts the
// new end from its own time. If the row has changed, or if another transaction has locked it, the
// store loads and swaps instead. The store also loads and swaps if the duration is not a multiple
// of a microsecond.
//
// A pgx pool first checks a connection that was idle for a second, which is one more exchange. To
// turn that off, set ShouldPing of the pool.
//
// Nothing depends on the state of a connection, so a pooler may share connections between
// transactions. Behind such a pooler, pgx must not prepare statements
// (default_query_exec_mode=exec), and the Store needs [Options.Listen]. lib/pq needs
// binary_parameters=yes.
//
// # Notifications
//
// A commit that notifies locks the whole database until it is on the disk. So this package never
// notifies in the commit that changes a lease. After a release, a break or a change to another ID,
// the store sends a second statement that notifies. One such statement serves all changes that were
// committed meanwhile. A release returns after its notification was sent, so that the program can
// exit at once. An acquire and a renewal do not notify, because no waiter can act on them. If a
// process ends between its commit and the notification, waiters are signalled within a second: see
// [Store.Watch].
//
// # Pools and load
//
// Give leases a pool of their own. In a shared pool, other queries delay renewals, and a lease is
// lost if its renewal is delayed for too long.
//
// A Store sends renewals before all other requests. A Store reserves a quarter of the connections
// for renewals, and at least one if the pool has more than one. While the reserved connections are
// busy, further renewals are collected and sent in one statement.
package pglease
