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
// The file is in WAL mode, so SQLite creates two more files beside it, -wal and -shm. With synchronous=FULL,
// each commit waits for one fsync. So even after a power failure, new tokens are newer than all tokens that
// were granted before. While a store uses the file, it holds a lock on a fourth file, -lock. SQLite's own
// locks would not be enough, because a process can lose them when any part of it closes the database.
//
// If one of the files is replaced or deleted while a store has it open, the leases in it have ended. The
// store then rejects renewals, so that holders stop at once. All later calls return a permanent error, so the
// program should exit and be started again.
//
// While another program has a transaction open, the file -wal grows. Above 64 MiB, a Store grants no lease
// until that transaction has ended, and above 256 MiB, it writes nothing.
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
// process after a boot chooses the offset such that this time is that of the wall clock, but not before the
// last time in the file. Until the next boot, changes of the wall clock have no effect on leases. If the
// machine boots with a wall clock that was set back, the leases last longer by the time for which the machine
// was off.
//
// On other systems, each process reads the wall clock when it opens the file, and from then on adds the time
// that passes. The file contains the last time that any process has used, so the time of the leases does not
// go back. If a process opens the file after the wall clock was set forward, leases of other processes can
// expire too early.
//
// # Backups
//
// The tokens of a new file begin at the current Unix time in microseconds, and each grant adds one. So even
// if the file is deleted, the tokens of the next file are newer, unless the wall clock was set back and the
// file -lock, which contains the newest token, was deleted, too. When [Open] opens a copy of a file, it
// deletes all leases in the copy, and its new tokens begin in the same way. Open recognizes a copy by the
// token in -lock, and on Linux also by its inode and its time of birth. Before you restore a copy, stop all
// processes, and remove -wal and -shm. If you also restore an old -lock, set [Options.Floor].
package sqlitelease
