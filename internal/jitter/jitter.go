// Package jitter draws IDs and jitter from a source of random bytes.
package jitter

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/fencedlease/lease"
	"github.com/google/uuid"
)

// A Source draws from the reader at Reader, and is safe for use by several goroutines at once if the reader
// is. It is as large as a pointer, so storing it in an interface does not allocate.
type Source struct{ Reader *io.Reader }

// ID draws an ID, from crypto/rand if the reader fails.
func (s Source) ID() lease.ID {
	id, err := uuid.NewRandomFromReader(*s.Reader)
	if err != nil {
		id = uuid.New()
	}
	return lease.ID(id)
}

// Shorten shortens a duration at random, by at most the given part, from 0 to 1.
func (s Source) Shorten(t time.Duration, part float64) time.Duration {
	return t - time.Duration(part*s.Float64()*float64(t))
}

// Float64 returns a number that is at least 0 and less than 1. If the reader fails, it is always the same,
// so there is no jitter.
func (s Source) Float64() float64 {
	var b [8]byte
	if _, err := io.ReadFull(*s.Reader, b[:]); err != nil {
		return 0.5
	}
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

// Steady is a source for tests in which pauses must have their full length: all IDs are different, and no
// duration is shortened.
type Steady struct{ IDs io.Reader }

// Read fills p from IDs if p is as long as an ID, and with zeros if it is shorter.
func (s Steady) Read(p []byte) (int, error) {
	if len(p) < len(lease.ID{}) {
		clear(p)
		return len(p), nil
	}
	return s.IDs.Read(p)
}
