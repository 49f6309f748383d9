// Package sqlitelease stores leases for the processes of one machine in a SQLite file. It needs no server and
// no cgo.
//
//	store, err := sqlitelease.Open("/var/lib/app/leases.db", nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//	ok, err := l.Acquire(ctx)
//
// # The file
//
// All processes open the same file. The file must be on a local file system, because file locks do not
// protect it from the processes of other machines. On Linux, [Open] rejects a file on a network file system.
// On other systems, Open cannot recognize network file systems. Open follows symbolic links and relative
// paths. It rejects a file with several hard links, because SQLite derives the name of its log from the path
// of the file. Leases need a file of their own, so Open also rejects a database that has other tables.
//
// The file is in WAL mode, so SQLite creates two more files beside it, such as leases.db-wal and
// leases.db-shm. With synchronous=FULL, each commit waits for one fsync. So even after a power failure, new
// tokens are newer than all tokens that were granted before. The Store adds a lock file, such as
// leases.db-lock, and locks it during each transaction. SQLite's own locks would not be enough, because a
// process can lose them when any part of it closes the database.
//
// If one of the files is replaced or deleted while a store has it open, the leases in it have ended. The
// store then rejects renewals, so that holders stop at once. All later calls return a permanent error, so the
// program should exit and be started again.
//
// The log in leases.db-wal grows while another program has a transaction open. A Store grants no lease while
// the log is larger than 64 MiB, and writes nothing while the log is larger than 256 MiB. When the
// transaction has ended, the Store shortens the log.
//
// # Many leases
//
// Renewals and releases are carried out before all other requests. If the file is too slow to renew another
// lease in addition to those that this Store holds, an acquire fails with an [engine.FullError]. Between two
// transactions, a busy Store lets other processes use the file, so that none of them is locked out.
//
// # The clock
//
// On Linux, the time of the leases is CLOCK_BOOTTIME plus an offset that is stored in the file. The first
// process after a boot chooses the offset, so that the time of the leases is the time of the wall clock.
// Until the next boot, changes of the wall clock have no effect on leases. After a boot with a wall clock
// that was set back, the time of the leases continues from the last time that is stored in the file. For
// example, if the machine was off for 20 s, the leases then last 20 s longer.
//
// On other systems, each process reads the wall clock when it opens the file, and from then on adds the time
// that passes. The file contains the latest time of the leases, and no process uses an earlier time, so the
// time of the leases does not go back. If a process opens the file after the wall clock was set forward,
// leases of other processes can expire too early.
//
// # Backups
//
// The tokens of a new file begin at the current Unix time in microseconds, and each grant adds one. So even
// if the file is deleted, the tokens of the next file are newer. The lock file also contains the newest
// token. If the wall clock was set back, the lock file must therefore not be deleted together with the
// database. When [Open] opens a copy of a file, it deletes all leases in the copy. The next token is at least
// the current Unix time in microseconds, and newer than all tokens in the copy and in the lock file. Open
// recognizes a copy because the lock file contains the number of a later commit, and on Linux also because
// the copy has another inode or another creation time. Before you restore a copy, stop all processes, and
// remove leases.db-wal and leases.db-shm. If you also restore an old lock file, set [Options.Floor].
package sqlitelease
