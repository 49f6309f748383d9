//go:build !linux

package sqlitelease

import (
	"os"
	"time"
)

// networkFileSystem returns "", because it cannot recognize network file systems on this system.
func networkFileSystem(string) (string, error) { return "", nil }

// identify returns no identity and one hard link, but an error if the file does not exist.
func identify(path string) (identity string, links uint32, err error) {
	_, err = os.Stat(path)
	return "", 1, err
}

// newClock returns a clock that only this process uses.
func newClock() (*clock, error) {
	began := time.Now()
	return &clock{steady: func() (time.Duration, error) { return time.Since(began), nil }, wall: time.Now}, nil
}
