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
// [Migrate] makes the tables, and every process may call it when it starts. [Tables] has the same SQL, for
// psql or for a tool that runs migrations. README.md describes the rows and how to break a lease by hand, how
// to guard data with a [Mark] or in SQL, the settings for a failover, the permissions, the size of the pool,
// poolers, and what requests cost.
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
// behind the records, and reports a lease as expired when it has seen the record unchanged for the time that
// the lease had left. So the lease of a crashed holder still ends, and a holder that renews keeps its lease.
//
// The server reads the time of a change while the row is locked, and the change becomes visible when it is
// committed. A Load during the commit therefore still returns the old record, although the server time that
// the Load returns can be later than the time of the change. For example, if the commit takes 10 ms, the
// server time can be up to 10 ms later.
//
// # Tokens
//
// As long as the database exists, every new token of a lease is newer than all earlier tokens of the lease,
// even if rows are deleted, restored or changed by hand. Triggers prevent the epochs of rows and of
// lease_floor from decreasing, so do not disable the triggers, and do not drop a table.
//
// # Transactions
//
// While a transaction has locked a row, even with "select for update", no renewal of that lease succeeds, and
// the holder can lose the lease. So commit such a transaction at once. No request depends on the state of its
// connection, so a pooler can share connections between transactions.
//
// A PostgreSQL transaction that sends a notification locks the whole database until its commit is on the
// disk. The Store therefore does not notify in the transaction of a release, a break, a take-over or a change
// to another ID. Instead, the Store sends the notifications of all recent changes together, in a second
// statement. A release returns only after this statement, or when its context is done. If a process ends
// before it has sent a notification, each [Store] with a watch of the lease finds the change by itself within
// a second.
package pglease
