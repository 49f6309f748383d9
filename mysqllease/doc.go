// Package mysqllease keeps leases in MySQL 8 or newer, or in MariaDB 10.11 or newer.
//
//	config, err := mysql.ParseDSN("user:password@tcp(localhost:3306)/app")
//	store, err := mysqllease.New(config, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// The driver is github.com/go-sql-driver/mysql. [Store.Lease] returns a holder, which is a [lease.Lease].
// [Store.Authority] returns an authority for every kind of request: it can also break a lease with a grace period,
// acquire an infinite lease, or take over a lease of the same owner.
//
// # Tables
//
// [Migrate] makes the tables, triggers and procedures, and every process may call it when it starts. [Tables] is
// the same as SQL, for the program mysql. A server that writes a binary log, as MySQL does by default, lets a user
// make triggers only with the privilege SUPER, or if log_bin_trust_function_creators is set. Each lease is a row,
// which the view lease shows with times in UTC. Names are compared as bytes. To free a lease, call
//
//	call lease_break('jobs/nightly', 30);
//
// The holder learns of the break at its next renewal, or within Options.PollInterval with session.Options.Watch,
// and has the rest of the 30 seconds to stop its work. A change by hand makes a new version of the row and wakes
// the processes that wait for the lease. To remove rows, use delete and not truncate: truncate runs no triggers, so
// tokens could fall. While a transaction has a row locked, no renewal of that lease succeeds, and the holder can
// lose it. So commit at once.
//
// # Time
//
// The server decides by its own clock whether a lease has expired. It reads the clock while the row is locked, and
// Load waits for a transaction that has the row locked. The time of a change is always later than that of the
// previous change of the same row, and Load never returns a time before the last change of the row. Each row has
// its own last time, and there is none for the whole database. So after the clock was set backward, a lease that
// was shown as expired can be shown as leased again, until a request has changed its row. If the server's clock is
// set forward while leases are held, they end early. If it is set backward, they last longer. If it is set
// backward by more than a second, the Store logs by how much. A lease whose holder renews it is not affected. If
// the holder crashes, a Store waits until it has seen the record unchanged for the time that the lease had left,
// and then reports the lease as expired. A server that runs with sysdate-is-now is refused.
//
// # Transactions
//
// The Store opens connections of its own, with the isolation level READ COMMITTED, so that no statement locks the
// gap between two rows. Each request is one statement or one call of a procedure, so a client that hangs holds no
// lock. READ COMMITTED needs the binlog_format ROW or MIXED. A [Mark] works with every isolation level of the
// transaction that it guards.
//
// # Failures
//
// After a failover to a replica that has not received the last grants, two holders can have the same lease and the
// same token, so no guard can tell their writes apart. README.md says which settings of the server prevent that,
// and what they cost. All writes must go to one server: do not use two servers of a multi-primary group, or of a
// Galera cluster, for the same leases. The Store uses no server that is read-only, as replicas should be. It closes
// its connections to such a server, so that a host name or a proxy can lead it to the new primary.
//
// Each error is one of three kinds. A [lease.ErrConflict] or a refusal means that nothing was written, for example
// after a deadlock or a wait for a lock that took too long. A [lease.ErrUnsent] means that the request was not
// sent, for example because the server has too many connections. After any other error, such as a connection that
// was killed, the outcome is unknown.
//
// # Tokens
//
// As long as the tables exist, every new token of a lease is newer than all earlier tokens of the same name, even
// if rows are deleted. A [Mark] guards data in the same database: use it in every transaction that reads or writes
// the data. A shell can guard its data with the procedure lease_advance_mark:
//
//	start transaction; call lease_advance_mark('counter', '$LEASE_TOKEN'); update counter set n = n + 1; commit;
//
// # Exchanges
//
// An exchange is one request to the server and its answer. An acquire without contention takes two, and a refusal
// one. A renewal, a change or a release takes one if the lease was acquired through the same Store. If the row has
// changed, if another transaction has locked it, or if the lease has ended, the request takes one or two more. If
// the duration of a lease is not a whole number of microseconds, every renewal takes two. A new connection takes
// four exchanges besides the handshake. While a quarter of the connections are busy with renewals, further renewals
// wait, and are then sent together, first those of the leases that end first. If the server could not renew another
// lease in time, the Store refuses to acquire it, with an [engine.FullError].
package mysqllease
