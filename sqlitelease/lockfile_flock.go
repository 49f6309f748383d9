//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlitelease

import (
	"io/fs"
	"os"
	"syscall"
)

// try locks the file. It returns false if another store has locked it.
func (l lockFile) try() (bool, error) {
	for {
		err := syscall.Flock(int(l.f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

func (l lockFile) unlock() { _ = syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN) }

// copyOwner gives a new file the owner of the database, if this process may do so. SQLite does the same for
// its own files.
func copyOwner(f *os.File, database fs.FileInfo) error {
	if s, ok := database.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return f.Chown(int(s.Uid), int(s.Gid))
	}
	return nil
}
