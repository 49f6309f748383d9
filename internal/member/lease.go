// Package member has what the packages slots and shards share: the lease with which a process shows itself to
// the other members of its group, the rules for their options, and how they end and break a lease.
package member

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

// A Lease shows a text, its owner, to all that list the leases of the group. Its name has a number that is
// drawn, because with a new name for each process, a store that keeps the records of released leases would
// keep one of every process that ever ran, and each list would read them all. Only one goroutine may use a
// Lease.
type Lease struct {
	*session.Session // of the number that was drawn last
	authority        lease.Authority
	name             func(number int) string
	o                session.Options
	id               lease.ID
	draw             *rand.Rand
	among            int
}

// New returns a Lease that shows o.Owner once it is acquired. The function name returns the name of the lease
// with a number below Most. The numbers follow from id, which must be random.
func New(a lease.Authority, name func(number int) string, id lease.ID, o session.Options) (*Lease, error) {
	l := &Lease{authority: a, name: name, o: o, id: id, draw: rand.New(rand.NewPCG(binary.BigEndian.Uint64(id[:]), 0)), among: first}
	return l, l.next()
}

func (l *Lease) next() error {
	s, err := session.New(l.authority, l.name(l.draw.IntN(l.among)), &l.o)
	if err == nil {
		l.Session = s
	}
	return err
}

// Acquire is like that of a Session, but draws another number whenever the lease is locked.
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

// Show makes the lease show owner, and acquires it if it is not held. The owner of a grant never changes, so
// another owner needs another lease. It is acquired before the old one is released, so that a list shows at
// least one of them.
func (l *Lease) Show(ctx context.Context, owner string) error {
	old := l.Session
	changed := owner != l.o.Owner
	if changed {
		o := l.o
		o.Owner = owner
		fresh, err := New(l.authority, l.name, l.id, o)
		if err != nil {
			return err
		}
		*l = *fresh
	} else if old.CheckAlive() {
		return nil
	}
	_, err := l.Acquire(ctx)
	if changed {
		if e := Close(ctx, old, &l.o); err == nil {
			err = e
		}
	}
	return err
}

// End releases the lease, as [Close] does.
func (l *Lease) End(ctx context.Context) error { return Close(ctx, l.Session, &l.o) }
