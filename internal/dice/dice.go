// Package dice draws IDs and jitter from a source of random bytes.
package dice

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/fencedlease/lease"
	"github.com/google/uuid"
)

// A Random makes what is random.
type Random interface {
	ID() lease.ID
	Shorten(t time.Duration, part float64) time.Duration // by up to that part
}

// A Dice draws from the reader at Reader. It may be used by as many goroutines as the reader. It is as
// large as a pointer, so that a variable of an interface type holds it without an allocation.
type Dice struct{ Reader *io.Reader }

// ID makes an ID, from crypto/rand if the reader fails.
func (d Dice) ID() lease.ID {
	id, err := uuid.NewRandomFromReader(*d.Reader)
	if err != nil {
		id = uuid.New()
	}
	return lease.ID(id)
}

// Shorten takes a random part of a duration, up to the given one, away. The part is from 0 to 1.
func (d Dice) Shorten(t time.Duration, part float64) time.Duration {
	return t - time.Duration(part*d.Number()*float64(t))
}

// Number returns a number from 0 to below 1. A reader that fails costs the jitter only.
func (d Dice) Number() float64 {
	var b [8]byte
	if _, err := io.ReadFull(*d.Reader, b[:]); err != nil {
		return 0.5
	}
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

// Steady is a source for tests whose pauses must have their full length: IDs differ, and no duration
// is shortened.
type Steady struct{ IDs io.Reader }

// Read fills p from IDs if it is as long as an ID, and with zeros if it is shorter.
func (s Steady) Read(p []byte) (int, error) {
	if len(p) < len(lease.ID{}) {
		clear(p)
		return len(p), nil
	}
	return s.IDs.Read(p)
}
