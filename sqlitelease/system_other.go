//go:build !linux

package sqlitelease

import (
	"os"
	"time"
)

// networkFileSystem returns "", because it cannot recognize network file systems on this system.
func networkFileSystem(string) (string, error) { return "", nil }

// On this system, identify cannot recognize copies or count hard links. For every file that exists, the
// identity is "" and the number of hard links is one. If the file does not exist, identify returns an error.
func identify(path string) (identity string, links uint32, err error) {
	_, err = os.Stat(path)
	return "", 1, err
}

// newClock returns a clock that only this process uses.
func newClock() (*clock, error) {
	began := time.Now()
	return &clock{steady: func() (time.Duration, error) { return time.Since(began), nil }, wall: time.Now}, nil
}
