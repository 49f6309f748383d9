// Package pglease keeps leases in PostgreSQL, version 14 or newer.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	store, err := pglease.New(pool, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [session.Session] that can hold the lease. [Store.Authority] returns a
// [lease.Authority], for programs that also break leases with a grace period, acquire infinite leases, or
// take over a lease of the same owner. For database/sql, use [NewSQL]. An [SQLStore] sends notifications but
// cannot receive them, so a session that waits for a lease through an SQLStore polls the server.
//
// # Tables
//
// [Migrate] makes the tables, and every process may call it when it starts. [Tables] has the same SQL, for
// psql or for a tool that runs migrations:
//
//	psql -v ON_ERROR_STOP=1 "$DATABASE_URL" < tables.sql
//
// If an error says that the tables are older than this package, run Migrate or the SQL again. This keeps the
// leases and their tokens. The database must have the encoding UTF8, because with another encoding two
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
// session.Options.Watch. The holder can use the rest of the grace period to stop its work:
//
//	app=> select lease_break('jobs/nightly', '30 s');
//
// [lease.Break] says how long a grace period should be. Without a grace period, a finite lease ends when it
// would have ended without another renewal, and an infinite lease ends at once. You can also delete the row
// of a lease, for example if the lease is no longer needed. Deleting a row frees the lease at once, although
// the holder of the lease believes that it has the lease until its next renewal is refused. With a lease of
// 15 s, that takes up to 5 s or, if requests are slow or fail, the whole duration of the lease. A holder with
// session.Options.Watch learns of the deletion at once.
//
// If you change a row by hand, the row gets a new version, and the processes that wait for the lease through
// a [Store] are notified. While a transaction has locked a row, even with "select for update", no renewal of
// that lease succeeds, and the holder can lose the lease. So commit such a transaction at once.
//
// A program that uses leases needs these permissions, those on lease_mark only for a [Mark]:
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
// the time of the previous change of the same row, and Load never returns a time before the last write of the
// row. These times are stored for each row, and not for the whole database. So after the server's clock was
// set backward, a lease that was reported as expired can be reported as leased again, until a request has
// changed its row.
//
// If the server's clock is set forward, held leases end early. If the clock is set backward, they last
// longer. When the clock has been set backward by more than a second, the Store logs by how much the clock is
// behind the records, so that you can correct the clock. A lease whose holder renews it is not affected. If
// the holder crashes, the Store of a waiting process measures the remaining time with the clock of its own
// machine. For example, if a record says that 10 s are left, and the record is still the same somewhat more
// than 10 s later, the Store reports the lease as expired. Then another process can acquire the lease.
//
// The server reads the time of a change while the row is locked, and the change becomes visible when it is
// committed. A Load during the commit therefore still returns the old record, although the server time that
// the Load returns can be later than the time of the change. For example, if the commit takes 10 ms, the
// server time can be up to 10 ms later.
//
// After a failover to a standby that has not received the last grants, two holders can have the same lease
// and the same token. To prevent this, make every commit wait for each standby that can be promoted: see
// synchronous_standby_names in README.md. All writes must go to one server, so every request to a standby or
// a read-only server returns an error. A server that has become read-only can keep its connections open. The
// Store then closes the connections, and sends the refused request again over a new connection. The
// connection string or a proxy must make sure that this connection leads to the right server.
//
// Set connect_timeout=2 in the connection string. Otherwise the driver waits for a frozen server instead of
// trying the next one. While a pgx pool without this limit is waiting for a server, a [Store] opens its own
// connections, and waits at most two seconds for each host. The Store opens at most as many connections as
// the pool may have. If the server is frozen when the program ends, the Close of a store of [open.Store]
// takes about a second, while the Close of your own pgx pool waits for up to 15 s.
//
// # Tokens
//
// As long as the database exists, every new token of a lease is newer than all earlier tokens of the lease,
// even if rows are deleted, restored or changed by hand. Triggers prevent the epochs of rows and of
// lease_floor from decreasing, so do not disable the triggers, and do not drop a table. A [Mark] guards data
// in the same database: use it in every transaction that reads or writes the data. In SQL, the procedure
// lease_advance_mark does the same, with the same marks:
//
//	app=> call lease_advance_mark('accounts', '00000000000000000007');
//
// # Exchanges
//
// An exchange is one request to the server and its answer. An acquire of a free lease takes two exchanges,
// and a refused acquire takes one. A renewal, a change or a release takes one exchange if the lease was
// acquired through the same Store, because the Store remembers the record that it wrote. If the row has
// changed, if another transaction has locked it, or if the lease has ended, the request takes one or two
// exchanges more. If the duration of a lease is not a whole number of microseconds, every renewal takes two
// exchanges. A pgx pool pings the server before it reuses a connection that was idle for more than a second.
// The ping takes one more exchange.
//
// A pooler can share connections between transactions, because no request depends on the state of its
// connection. pgx then needs default_query_exec_mode=exec and [Options.Listen], and lib/pq needs
// binary_parameters=yes.
//
// # Notifications
//
// A PostgreSQL transaction that sends a notification locks the whole database until its commit is on the
// disk. The Store therefore does not notify in the transaction of a release, a break, a take-over or a change
// to another ID. Instead, the Store sends the notifications of all recent changes together, in a second
// statement. A release returns only after this statement, or when its context is done. If a process ends
// before it has sent a notification, each [Store] with a watch of the lease finds the change by itself within
// a second.
//
// # Pools
//
// Give leases their own pool of 4 connections or more, because a lease is lost if other queries delay its
// renewal for too long. If the number of connections is limited, a Store sends renewals, releases and
// notifications first, and reserves a quarter of the connections for them. With two or three connections, a
// Store reserves one. With a single connection, it reserves none. While the reserved connections are busy,
// renewals wait. The Store then sends the waiting renewals together in one statement. If there are too many
// renewals for one statement, the leases that end first are renewed first. If the server is too slow to renew
// one more lease, the Store refuses to acquire it, with an [engine.FullError]. [NewSQL] says how to limit the
// number of connections with each driver.
package pglease
