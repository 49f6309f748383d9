package kubeserver

import (
	"os"
	"syscall"
)

// lock locks a file against other processes. It waits until they have unlocked the file.
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
