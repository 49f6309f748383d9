package session

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/fencedlease/lease"
	"github.com/google/uuid"
)

// A dice draws IDs and jitter from a reader.
type dice struct{ r io.Reader }

// id makes an ID, from crypto/rand if the reader fails.
func (d dice) id() lease.ID {
	id, err := uuid.NewRandomFromReader(d.r)
	if err != nil {
		id = uuid.New()
	}
	return lease.ID(id)
}

// shorten takes a random part of a duration, up to the given one, away.
func (d dice) shorten(t time.Duration, part float64) time.Duration {
	return t - time.Duration(part*d.number()*float64(t))
}

// number returns a number from 0 to below 1. A reader that fails costs the jitter only.
func (d dice) number() float64 {
	var b [8]byte
	if _, err := io.ReadFull(d.r, b[:]); err != nil {
		return 0.5
	}
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

// jitter shortens a duration by up to half. It must be called without mu, which the reader is
// under.
func (s *Session) jitter(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.random.shorten(d, 0.5)
}
