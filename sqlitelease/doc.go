// Package sqlitelease keeps leases for the processes of one machine in a SQLite file. It needs no server
// and no cgo.
//
//	store, err := sqlitelease.Open("/var/lib/app/leases.db", nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//	ok, err := l.Acquire(ctx)
//
// # The file
//
// All processes open the same file, which must be on a local file system, because the locks of a file do
// not exclude the processes of other machines. On Linux, [Open] refuses a network file system. On other
// systems, Open cannot recognize one. Symbolic links and relative paths are resolved. A file with several
// hard links is refused, because SQLite derives the name of its log from the path. A database that has
// other tables is refused, because leases need a file of their own.
//
// The file is in WAL mode, with synchronous=FULL, so SQLite keeps two more files beside it, -wal and -shm.
// Each commit waits for one fsync, so after a power failure, new tokens are still newer than those that
// were granted before. While a store uses these files, it holds a lock on a fourth one, -lock. A program
// that opens, reads and closes only the other files cannot drop that lock.
//
// If one of the files is replaced or deleted while a store has it open, the leases in it have ended. The
// store refuses renewals, so that holders stop at once, and every later call returns an error that a retry
// cannot fix. The program should then exit and be started again.
//
// While another program keeps a transaction open, the file -wal grows. Above 64 MiB, a Store grants no
// lease, and above 256 MiB it writes nothing, until that transaction has ended.
//
// # More leases than fit
//
// Renewals and releases are carried out before all other requests. If the file is too slow to renew one
// more lease besides those that this Store holds, an acquire is refused with an [engine.FullError]. Between
// two transactions, a busy Store gives way to other processes that wait for the file, so that no process is
// shut out.
//
// # The clock
//
// On Linux, the time is CLOCK_BOOTTIME plus an offset that is stored in the file. The first process after a
// boot sets the offset so that the time is that of the wall clock, but not before the last time in the
// file. Until the next boot, a change of the wall clock has no effect on leases. If the machine boots with
// a wall clock that was set back, the time for which it was off does not count.
//
// On other systems, each process reads the wall clock when it opens the file, and from then on adds the
// time that passes. The file contains the last time that any process has used, so the time does not go
// back. A process that opens the file after the wall clock was set forward can end the leases of others
// early.
//
// # Backups
//
// The tokens of a new file begin at the current Unix time in microseconds, and each grant raises them by
// one. So if the file is deleted, the tokens of the file that replaces it are newer, provided that the
// wall clock is right or the file -lock was kept, which contains the newest token. [Open] recognizes a
// copied file by that token, and on Linux also by its inode and its time of birth. Open deletes all leases
// in the copy, and begins with new tokens in the same way. Stop all processes before you put back a copy,
// and remove -wal and -shm. If an old -lock was put back too, set [Options.Floor].
package sqlitelease
