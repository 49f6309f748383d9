// Package mysqllease keeps leases in MySQL 8 or newer, or in MariaDB 10.11 or newer.
//
//	config, err := mysql.ParseDSN("user:password@tcp(localhost:3306)/app")
//	store, err := mysqllease.New(config, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// The driver is github.com/go-sql-driver/mysql. [Store.Lease] returns a holder, which is a [lease.Lease].
// [Store.Authority] returns an authority for every kind of request: it can also break a lease with a grace period,
// acquire an infinite lease, or take over a lease of the same owner. [Migrate] makes the tables, and [Tables] is the
// same as SQL. README.md describes the rows, the guard of data with a [Mark] or in SQL, the settings that a failover
// needs, the permissions, and what requests cost.
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
// and then reports the lease as expired.
//
// # Transactions
//
// Each request is one statement or one call of a procedure, on a connection of the Store with the isolation level READ
// COMMITTED, so that no statement locks the gap between two rows and a client that hangs holds no lock. While another
// transaction has a row locked, no renewal of that lease succeeds, and the holder can lose it.
//
// # Errors
//
// Each error is one of three kinds. A [lease.ErrConflict] or a refusal means that nothing was written, for example
// after a deadlock or a wait for a lock that took too long. A [lease.ErrUnsent] means that the request was not
// sent, for example because the server has too many connections. After any other error, such as a connection that
// was killed, the outcome is unknown.
//
// # Exchanges
//
// An exchange is one request to the server and its answer. An acquire without contention takes two, and a refusal
// one. A renewal, a change or a release takes one if the lease was acquired through the same Store. If the row has
// changed, if another transaction has locked it, or if the lease has ended, the request takes one or two more. If
// the duration of a lease is not a whole number of microseconds, every renewal takes two. A new connection takes
// four exchanges besides the handshake.
package mysqllease
