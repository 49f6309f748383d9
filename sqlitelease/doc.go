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
// All processes open the same file. It must be on a local file system, because SQLite's locks do not
// exclude the processes of other machines. On Linux, [Open] refuses a network file system. On other
// systems it cannot tell. Symbolic links and relative paths are resolved. A file with several hard links
// is refused, because SQLite derives the name of its log from the path. If the file is replaced or
// deleted while a store has it open, every later call returns an error.
//
// The file is in WAL mode, which makes the files -wal and -shm beside it, with synchronous=FULL. Each
// commit waits for one fsync, so a token that was granted does not fall after a power failure.
//
// # The clock
//
// On Linux, the time is CLOCK_BOOTTIME plus an offset that is stored in the file. The first process after
// a boot sets the offset so that the time is that of the wall clock, but not before the last time in the
// file. Until the next boot, a change of the wall clock has no effect on leases. After a boot with the
// wall clock set back, leases do not count the time while the machine was off.
//
// On other systems, each process reads the wall clock when it opens the file, and then counts on. The
// last time is stored in the file, and time does not go back. A process that opens the file after the
// wall clock was set forward can end the leases of others early.
//
// # Backups
//
// A new file begins with tokens at the current Unix time in microseconds, and a grant raises a token by
// one, so the tokens of a deleted file are below those of its successor if the wall clock is right. On
// Linux, Open recognizes a copied file by its inode and its time of birth, deletes all leases in it, and
// begins with new tokens in the same way. Stop all processes before you put back a copy. A copy that
// overwrites the content of the same inode is not recognized: remove the old file and its -wal and -shm
// first, or set [Options.Floor].
package sqlitelease
