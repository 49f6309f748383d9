package session

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/fencedlease/lease"
	"github.com/google/uuid"
)

// propose returns the ID that the next Acquire proposes, minting it if there is none.
func (s *Session) propose() lease.ID {
	if s.proposal.IsZero() {
		s.proposal = s.mint()
	}
	return s.proposal
}

// mint makes an ID, from crypto/rand if the given source fails.
func (s *Session) mint() lease.ID {
	id, err := uuid.NewRandomFromReader(s.o.Rand)
	if err != nil {
		id = uuid.New()
	}
	return lease.ID(id)
}

// shorten takes a random part of d, up to the given one, away.
func (s *Session) shorten(d time.Duration, part float64) time.Duration {
	return d - time.Duration(part*random(s.o.Rand)*float64(d))
}

// random returns a number from 0 to below 1. A reader that fails costs the jitter only.
func random(r io.Reader) float64 {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0.5
	}
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}

func (s *Session) jitter(d time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shorten(d, 0.5)
}
