// Package numbered acquires any one of many numbered leases, for a process that needs a lease of its own
// whose name does not matter. With a new name for each process, a store that keeps the records of released
// leases would keep one of every process that ever ran, and each list would read them all. The package also has what
// else slots and shards share.
package numbered

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/session"
)

const (
	first = 64 // the number of leases from which the first one is drawn

	// Most is the number of leases that can be drawn.
	Most = 1 << 20
)

// A Lease is a Session of the lease that was drawn last. Only one goroutine may call Acquire and
// AcquireWithToken.
type Lease struct {
	*session.Session
	open  func(number int) (*session.Session, error)
	draw  *rand.Rand
	among int
}

// New returns a Lease. The function open returns a Session of the lease with a number below Most. The
// numbers follow from id, which must be random.
func New(id lease.ID, open func(number int) (*session.Session, error)) (*Lease, error) {
	l := &Lease{open: open, draw: rand.New(rand.NewPCG(binary.BigEndian.Uint64(id[:]), 0)), among: first}
	return l, l.next()
}

func (l *Lease) next() error {
	s, err := l.open(l.draw.IntN(l.among))
	if err == nil {
		l.Session = s
	}
	return err
}

// Acquire is like that of a Session, but draws another lease whenever the lease is locked.
func (l *Lease) Acquire(ctx context.Context) (bool, error) {
	_, ok, err := l.AcquireWithToken(ctx)
	return ok, err
}

// AcquireWithToken is like Acquire, but also returns the token.
func (l *Lease) AcquireWithToken(ctx context.Context) (lease.Token, bool, error) {
	for {
		tok, ok, err := l.Session.AcquireWithToken(ctx)
		if ok {
			l.among = first
		}
		if ok || err != nil || l.among >= Most {
			return tok, ok, err
		}
		l.among *= 2
		if err := l.next(); err != nil {
			return "", false, err
		}
	}
}
