//go:build !linux

package sqlitelease

import (
	"os"
	"time"
)

// networkFileSystem cannot tell.
func networkFileSystem(string) (string, error) { return "", nil }

// identify knows no identity and no hard links, but returns an error if there is no file.
func identify(path string) (identity string, links uint32, err error) {
	_, err = os.Stat(path)
	return "", 1, err
}

// newClock returns a clock of this process alone.
func newClock() (*clock, error) {
	began := time.Now()
	return &clock{steady: func() (time.Duration, error) { return time.Since(began), nil }, wall: time.Now}, nil
}
