// Package mysqllease stores leases in MySQL 8 or newer, or in MariaDB 10.11 or newer.
//
//	config, err := mysql.ParseDSN("user:password@tcp(localhost:3306)/app")
//	store, err := mysqllease.New(config, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// The driver is github.com/go-sql-driver/mysql. [Migrate] creates the tables, and [Tables] is the SQL for
// them. [Store.Lease] returns a Session for one lease. [Store.Authority] is for all other requests, for
// example to break a lease with a grace period. README.md describes the rows, how to guard data with a [Mark]
// or in SQL, the settings for a failover, the permissions, and what requests cost.
//
// # Time
//
// The server decides by its own clock whether a lease has expired. It reads the clock while it has the row
// locked, and [Store.Load] waits for transactions that have locked the row. Each change of a row gets a later
// time than all earlier changes of the row, even if the clock was set back. If the clock shows an earlier
// time than the last change of the row, Load returns the time of that change instead.
//
// If the server's clock is set forward while leases are held, they expire early. If it is set backward, they
// last longer, and a lease that has expired can appear as leased again, until a request changes its row.
// README.md says what the Store does then.
//
// # Transactions
//
// Each request is one statement or one call of a procedure, so no transaction waits for a client that hangs.
// The Store's connections use the isolation level READ COMMITTED, in which no statement locks the gap between
// two rows. While another transaction has locked the row of a lease, no renewal of the lease succeeds, and
// the holder can lose the lease.
//
// # Errors
//
// There are three kinds of errors. A [lease.ErrConflict] or a refusal means that nothing was written. For
// example, a write that waits too long for a lock causes a [lease.ErrConflict]. A [lease.ErrUnsent] means that
// the request was not sent, for example because the server has too many connections. After any other error,
// for example a broken connection, the outcome is unknown.
package mysqllease
