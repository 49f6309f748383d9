// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] returns an authority for
// every kind of request: it can also break a lease with a grace period, acquire an infinite lease, or take
// over a lease of the same owner. For database/sql, use [NewSQL]. An SQLStore sends notifications but
// cannot receive them, so a session that waits for a lease through one polls the server.
//
// # Tables
//
// [Migrate] makes the tables, and every process may call it when it starts. [Tables] is the same as SQL,
// for psql or for a tool that runs migrations:
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//
// If an error says that the tables are older than this package, run Migrate or the SQL again; the leases
// and their tokens stay. The database must have the encoding UTF8, because with another encoding two
// drivers could read the name of one lease as two different names.
//
// Each lease is a row, which psql can show:
//
//	app=> select name, state, owner, until, epoch from lease;
//	     name     | state  |  owner   |             until             | epoch
//	--------------+--------+----------+-------------------------------+-------
//	 jobs/nightly | leased | worker-1 | 2012-01-26 23:30:33.512307+00 |     7
//
// To free a lease, call lease_break. The holder learns of the break at its next renewal, or at once with
// session.Options.Watch, and has the rest of the grace to stop its work:
//
//	app=> select lease_break('jobs/nightly', '30 s');
//
// [lease.Break] says how long a grace should be. Without a grace, a finite lease ends when it would end
// without a further renewal, and an infinite lease ends at once. You can also delete rows, for example of
// names that are not needed any more. Deleting a row frees the lease at once, although its holder believes
// that it holds the lease until its next renewal is refused. With a lease of 15 s, that takes up to 5 s or,
// if requests are slow or fail, the whole duration of the lease. A holder with a Watch learns of the
// deletion at once.
//
// A change by hand makes a new version of the row and wakes the processes that wait for the lease. While a
// transaction has a row locked, even by "select for update", no renewal of that lease succeeds, and the
// holder can lose it. So commit at once. A row can store every valid name of a lease.
//
// A program that uses leases needs these permissions. Those on lease_mark are only for [Mark]:
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
// The server decides by its own clock whether a lease has expired. The clock of a client need not show the
// right time, but it must run at the right rate: see session.Options. The time of a change is never before
// the time of the previous change of the same row, and Load never returns a time before the last write of
// the row. Each row has its own last time, and there is none for the whole database. So after the clock was
// set backward, a lease that was shown as expired can be shown as leased again, until a request has changed
// its row.
//
// If the server's clock is set forward while leases are held, they end early. If it is set backward, they
// last longer. If it is set backward by more than a second, the Store logs by how much the clock is behind
// the records. A lease whose holder renews it is not affected. If the holder crashes, a Store waits until
// it has seen the record unchanged for the time that the lease had left, and then reports the lease as
// expired, so that another process can acquire it. Correct the clock of the server soon.
//
// The server reads the time of a change while the row is locked, and the change becomes visible when it is
// committed. A Load just before the commit returns the old row, with a server time that can be later than
// the time of the change, by at most the duration of the commit.
//
// After a failover to a standby that has not received the last grants, two holders can have the same lease
// and the same token, unless commits wait for every standby that can be promoted: see
// synchronous_standby_names in README.md. All writes must go to one server. Every request to a standby or a
// read-only server returns an error. A server that has become read-only can keep its connections open. The
// store then closes them, and sends the refused request again over a new connection, which the connection
// string or a proxy must lead to the right server.
//
// Set connect_timeout=2 in the connection string. Otherwise the driver waits for a server that is frozen,
// instead of trying the next one. If the configuration of a pgx pool has no limit, a [Store] opens
// connections of its own while the pool is waiting, as many as the pool may have, with a limit of two
// seconds for each host. If the server is frozen when the program ends, the Close of a store of [open.Store]
// cuts its connections after a second, while the Close of a pgx pool of your own waits for up to 15 s.
//
// # Tokens
//
// As long as the database exists, every new token of a lease is newer than all earlier tokens of the same
// name, even if rows are deleted, restored or changed by hand. Triggers keep the epochs of rows and of
// lease_floor from falling. Do not disable them, and do not drop a table. A [Mark] guards data in the same
// database: use it in every transaction that reads or writes the data. In SQL, the procedure
// lease_advance_mark does the same, with the same marks:
//
//	app=> call lease_advance_mark('accounts', '00000000000000000007');
//
// # Exchanges
//
// An exchange is one request to the server and its answer. An acquire without contention takes two, and a
// refusal one. A renewal, a change or a release takes one if the lease was acquired through the same store,
// which starts from the last record that it committed. If the row has changed, if another transaction has
// locked it, or if the lease has ended, the request takes one or two more. If the duration of a lease is
// not a whole number of microseconds, every renewal takes two. A pgx pool pings the server before it reuses
// a connection that was idle for more than a second, which is one more exchange.
//
// No request depends on the state of its connection, so a pooler can share connections between
// transactions. pgx then needs default_query_exec_mode=exec and [Options.Listen], and lib/pq needs
// binary_parameters=yes.
//
// # Notifications
//
// A PostgreSQL transaction that sends a notification locks the whole database until its commit is on the
// disk. So after a release, a break, a take-over or a change to another ID, the store sends the
// notification with a second statement, which covers all changes since the previous one. A release returns
// only after that, or when its context is done. If a process ends before it has sent the notification, a
// [Store] finds the change itself within a second.
//
// # Pools
//
// Give leases a pool of their own, of 4 connections or more, because a lease is lost if other queries delay
// its renewal for too long. If the number of connections is limited, a Store sends renewals, releases and
// notifications first, and reserves a quarter of the connections for them: one of two or three, and none of
// one. While these are busy, renewals wait and are then sent together in one statement, first those of the
// leases that would end first. If the server is too slow to renew one more lease, the Store refuses to
// acquire it, with an [engine.FullError]. [NewSQL] says how to set the limit with each driver.
package pglease
