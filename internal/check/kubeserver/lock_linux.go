package kubeserver

import (
	"os"
	"syscall"
)

// lock locks a file against other processes, and waits until no other process has locked it.
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
