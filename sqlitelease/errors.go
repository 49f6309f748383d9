package sqlitelease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// code returns the primary result code of an error of SQLite, or 0.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// errLocked means that another store has the lock of the file.
var errLocked = errors.New("the file is locked")

func isBusy(err error) bool {
	return errors.Is(err, errLocked) || code(err) == sqlite3.SQLITE_BUSY || code(err) == sqlite3.SQLITE_LOCKED
}

// The map advice contains, for each result code of SQLite, a text that says what the user can do. An error is
// permanent if a retry cannot help.
var advice = map[int]struct {
	text      string
	permanent bool
}{
	sqlite3.SQLITE_READONLY: {"the file, or the folder in which the files -wal, -shm and -lock are made, cannot be written: correct the permissions", true},
	sqlite3.SQLITE_PERM:     {"correct the permissions of the file and its folder", true},
	sqlite3.SQLITE_CANTOPEN: {"check that the folder exists and that this user may write in it", true},
	sqlite3.SQLITE_NOTADB:   {"the file is not a SQLite database: name another file", true},
	sqlite3.SQLITE_CORRUPT:  {"the file is damaged: stop all processes that use it, and delete it with its -wal and -shm", true},
	sqlite3.SQLITE_FULL:     {"the disk is full, or a quota is reached: make room", false},
	sqlite3.SQLITE_IOERR:    {"the file could not be read or written: check the disk, its free space and the limits of the process", false},
	sqlite3.SQLITE_BUSY:     {"another process keeps the file locked: is it stopped, or does a tool have a transaction open?", false},
}

func describeError(what string, err error) error {
	if err == nil || errors.Is(err, lease.ErrClosed) || errors.Is(err, context.Canceled) && code(err) == 0 {
		return err
	}
	a := advice[code(err)]
	switch {
	case errors.Is(err, errLocked):
		a = advice[sqlite3.SQLITE_BUSY]
	case errors.Is(err, fs.ErrPermission):
		a = advice[sqlite3.SQLITE_READONLY]
	case errors.As(err, new(*goneError)):
		a.permanent = true
	case strings.Contains(err.Error(), "no such table"):
		a.text, a.permanent = "the tables were dropped: open the store again", true
	}
	return engine.WithAdvice(fmt.Errorf("sqlitelease: %s: %w", what, err), a.text, a.permanent)
}
