package sqlitelease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/fencedlease/lease"
)

// A store uses a database and three more files. The names of these files are the name of the database with
// one of the suffixes.
type files struct {
	path     string // of the database
	identity string // of the database; see identify
	opened   [len(suffixes)]fs.FileInfo
}

// The file with the suffix "-wal" is SQLite's log of the last commits, and the file with the suffix "-shm" is
// an index of this log. The lockFile has the suffix "-lock".
var suffixes = [...]string{"-wal", "-shm", lockSuffix}

// removeStale removes files of an earlier database at this path. If the database is new, it removes the log.
// If there is no log, it removes an old index. Otherwise SQLite would use this index to read the next log.
// Stores that still have these files open get an error from check.
func (f *files) removeStale() error {
	database, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	_, err = os.Stat(f.path + "-wal")
	switch {
	case database.Size() == 0:
		err = errors.Join(removeIfPresent(f.path+"-wal"), removeIfPresent(f.path+"-shm"))
	case errors.Is(err, fs.ErrNotExist):
		err = removeIfPresent(f.path + "-shm")
	}
	return err
}

func removeIfPresent(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remember notes which files are open. It does not open the files of SQLite, because closing such a file
// would drop SQLite's locks on it.
func (f *files) remember(l lockFile) (err error) {
	for i, suffix := range suffixes {
		if suffix == lockSuffix {
			f.opened[i], err = l.f.Stat()
		} else {
			f.opened[i], err = os.Stat(f.path + suffix)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check returns a goneError if a path does not lead to the file that the store has opened. A process that
// opens the path later would use a different file, and could grant the same leases.
func (f *files) check() error {
	identity, links, err := identify(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &goneError{what: "the file " + f.path + " was deleted"}
	case err != nil:
		return err
	case identity != f.identity:
		return &goneError{what: "the file " + f.path + " was replaced"}
	case links > 1:
		return errLinks(links)
	}
	for i, suffix := range suffixes {
		now, err := os.Stat(f.path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &goneError{what: "the file " + f.path + suffix + " was deleted"}
		case err != nil:
			return err
		case !os.SameFile(f.opened[i], now):
			return &goneError{what: "the file " + f.path + suffix + " was replaced"}
		}
		f.opened[i] = now
	}
	return nil
}

func errLinks(links uint32) error {
	return lease.Permanent(fmt.Errorf("the file has %d hard links, and SQLite needs a single one: remove the others, or use symbolic links", links))
}

// logSize returns the size that the log had at the last check.
func (f *files) logSize() int64 { return f.opened[0].Size() }

// A goneError says that a path of the store leads to another file, or to no file. Other processes can no
// longer find the leases of the store, so all its leases have ended.
type goneError struct {
	what string
	now  time.Time  // the last time of the leases
	code lease.Code // the refusal if the request needs a lease that is held; otherwise 0
}

func (e *goneError) Error() string {
	return e.what + " while it was open, so the leases in it have ended: end the program and start it again, or open the store again"
}

func (e *goneError) Unwrap() error {
	if e.code == 0 {
		return nil
	}
	return e.code
}
