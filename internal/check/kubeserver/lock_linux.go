package kubeserver

import (
	"os"
	"syscall"
)

// lock locks a file against other processes. If another process has locked the file, lock waits
// until the file is unlocked.
func lock(path string) (unlock func(), err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
