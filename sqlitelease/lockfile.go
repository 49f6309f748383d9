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
// The locks of SQLite are not enough, because POSIX record locks belong to a process. A process loses all its
// locks on a file when any part of the process closes the file, for example after reading it for a backup
// (https://www.sqlite.org/howtocorrupt.html, section 2.2). Then two processes could write at the same time,
// and both grant the same lease. A lock of flock(2) belongs to the open file, so nobody else can drop it. On
// systems without flock, such as Windows, the locks of SQLite also belong to the open file. The lockFile
// therefore needs no lock on these systems.
//
// The lockFile contains the version of the last commit and the highest epoch. If the database has an older
// version, somebody has replaced the database with an older copy, or has removed its log.
type lockFile struct {
	f    *os.File
	made bool // whether openLockFile has created the file
}

const lockSuffix = "-lock"

// A byte after the two numbers in the file says that another store is waiting for the lock. Without this
// byte, a busy store would lock the file again within microseconds, so a store that tries every few
// milliseconds would rarely get it.
const (
	askedAt = 42 // the length of lockFormat
	asking  = 'w'
)

// The method ask tells the store that has the lock that another store is waiting for it. This is only a hint,
// so the method needs no lock and ignores errors. Before the first commit, the file is empty. The method then
// writes nothing, because a reader would report a file without the two numbers as invalid.
func (l lockFile) ask() {
	if info, err := l.f.Stat(); err == nil && info.Size() >= askedAt {
		_, _ = l.f.WriteAt([]byte{asking}, askedAt)
	}
}

// If another store has called the method ask, the method called asked returns true, and removes the byte that
// the other store has written. The next result is then true only if a store has called the method ask again.
// The caller has the lock.
func (l lockFile) asked() bool {
	var b [1]byte
	if _, err := l.f.ReadAt(b[:], askedAt); err != nil || b[0] != asking {
		return false // nobody has asked since the file was created, or the next transaction reports the error
	}
	_, _ = l.f.WriteAt([]byte{' '}, askedAt)
	return true
}

// openLockFile opens the lock file of a database. If it creates the file, the file gets the permissions and
// the owner of the database, so that the same users can use both files.
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

// read returns the version of the last commit and the highest epoch. They are zero before the first commit.
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

// The method write stores the version and the highest epoch of a commit. The caller must commit the database
// first, and the commit waits for the disk. So even after a crash, the lock file is never newer than the
// database.
func (l lockFile) write(version, epoch int64) error {
	_, err := l.f.WriteAt(fmt.Appendf(nil, lockFormat, version, epoch), 0)
	return err
}
