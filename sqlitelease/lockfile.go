package sqlitelease

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A lockFile is the file "-lock" beside the database. A store locks it whenever it uses the database.
//
// The locks that SQLite takes are not enough. POSIX record locks belong to a process. As soon as any part
// of the process closes a file, for example a backup or a checksum that has read the file, the process
// loses all of its locks on that file (https://www.sqlite.org/howtocorrupt.html, section 2.2). After that,
// two processes could write at the same time, and both grant a lease. The lock of flock(2) belongs to the
// open file, so nobody else can drop it. On systems without flock, such as Windows, the locks that SQLite
// takes belong to the open file too, and the lockFile only notes what was committed.
//
// The lockFile contains the version of the last commit and the highest epoch. If the database shows an
// older version, somebody has put an older copy in its place, or has removed its log.
type lockFile struct {
	f    *os.File
	made bool // openLockFile has made the file
}

const lockSuffix = "-lock"

// A byte after the numbers says that another store is waiting for the lock. Without this, a store that always has
// more to do would lock the file again within microseconds, and one that looks for the lock every few milliseconds
// would hardly ever get it.
const (
	askedAt = 42 // after lockFormat
	asking  = 'w'
)

// ask tells the store that has the lock that another store is waiting for it. This is only a hint, so ask needs no
// lock, and ignores an error, which the next transaction would also get. Before the first commit, ask does nothing,
// because the file does not contain its numbers yet: if it contained only the byte after them, read would not
// understand the file.
func (l lockFile) ask() {
	if info, err := l.f.Stat(); err == nil && info.Size() >= askedAt {
		_, _ = l.f.WriteAt([]byte{asking}, askedAt)
	}
}

// asked reports whether a store has asked for the lock since the last call. The caller has the lock.
func (l lockFile) asked() bool {
	var b [1]byte
	if _, err := l.f.ReadAt(b[:], askedAt); err != nil || b[0] != asking {
		return false // nobody has asked since the file was made, or the next transaction shows the error
	}
	_, _ = l.f.WriteAt([]byte{' '}, askedAt)
	return true
}

// openLockFile opens the lock file of a database, or makes it with the permissions and the owner of the
// database, so that the same users can use both.
func openLockFile(database string) (l lockFile, err error) {
	info, err := os.Stat(database)
	if err != nil {
		return l, err
	}
	path := database + lockSuffix
	l.f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if l.made = err == nil; l.made {
		err = errors.Join(l.f.Chmod(info.Mode().Perm()), copyOwner(l.f, info))
	} else if errors.Is(err, fs.ErrExist) {
		l.f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	return l, err
}

const lockFormat = "%020d %020d\n"

// read returns the version of the last commit and the highest epoch, or zeros if there was no commit.
func (l lockFile) read() (version, epoch int64, err error) {
	b := make([]byte, 42)
	n, err := l.f.ReadAt(b, 0)
	switch {
	case n == 0 && err == io.EOF:
		return 0, 0, nil
	case err != nil && err != io.EOF:
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(string(b), lockFormat, &version, &epoch); err != nil {
		return 0, 0, fmt.Errorf("the file %s does not contain two numbers: delete it while no process uses the leases", l.f.Name())
	}
	return version, epoch, nil
}

// write notes what was committed. It comes after the commit and does not wait for the disk, so that the
// file is never ahead of the database.
func (l lockFile) write(version, epoch int64) error {
	_, err := l.f.WriteAt(fmt.Appendf(nil, lockFormat, version, epoch), 0)
	return err
}
