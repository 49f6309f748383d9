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
// locked, and [Store.Load] waits for transactions that have locked the row. In each row, the time of a change
// is later than that of the change before, and Load never returns a time before the last change of the row.
//
// If the server's clock is set forward while leases are held, they expire early. If it is set backward, they
// last longer, and a lease that has expired can appear as leased again, until a request changes its row.
//
// # Transactions
//
// Each request is one statement or one call of a procedure, so no transaction waits for a client that hangs.
// The Store's connections use the isolation level READ COMMITTED, in which no statement locks the gap between
// two rows. While another transaction has locked a row, no renewal of that lease succeeds, and its holder can
// lose the lease.
//
// # Errors
//
// There are three kinds of errors. A [lease.ErrConflict] or a refusal means that nothing was written, for
// example after a deadlock or a long wait for a lock. A [lease.ErrUnsent] means that the request was not
// sent, for example because the server has too many connections. After any other error, for example a broken
// connection, the outcome is unknown.
package mysqllease
