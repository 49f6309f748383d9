package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A naiveLease is a holder as somebody may write it first: one turn for everything, also while
// it asks and while it tells, and a goroutine that looks from time to time.
type oneLockLease struct {
	Holder
	turn     chan struct{}
	n        byte
	id       lease.ID
	until    time.Time
	handlers map[int]func(error)
}

func newOneLockLease(t testing.TB, h Holder) *oneLockLease {
	l := &oneLockLease{Holder: h, turn: make(chan struct{}, 1), handlers: map[int]func(error){}}
	if lease.CheckName(h.Name) != nil || h.Duration < 1 {
		t.Fatal("a bad holder")
	}
	quit := make(chan struct{})
	t.Cleanup(func() { close(quit) })
	go func() {
		for {
			select {
			case <-time.After(h.Duration / 3):
				l.renew()
			case <-quit:
				return
			}
		}
	}()
	return l
}

func (l *oneLockLease) renew() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.id.IsZero() {
		return
	}
	sent := time.Now()
	_, err := l.Authority.Do(context.Background(), l.Name, renew(l.id))
	if err == nil {
		l.until = sent.Add(l.Duration)
		return
	}
	if lease.CodeOf(err) != 0 || time.Now().After(l.until) {
		l.id = lease.ID{}
		for _, f := range l.handlers {
			f(err)
		}
	}
}

func (l *oneLockLease) Acquire(ctx context.Context) (bool, error) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if !l.id.IsZero() {
		return true, nil
	}
	l.n++
	id, sent := lease.ID{1, l.n, byte(len(l.Owner))}, time.Now()
	copy(id[4:], l.Owner)
	_, err := l.Authority.Do(ctx, l.Name, acquire(id, l.Duration))
	switch {
	case errors.Is(err, lease.ErrHeldByOther):
		return false, nil
	case err != nil:
		return false, err
	}
	l.id, l.until = id, sent.Add(l.Duration)
	return true, nil
}

func (l *oneLockLease) Release(ctx context.Context) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.id.IsZero() {
		return nil
	}
	_, err := l.Authority.Do(ctx, l.Name, release(l.id))
	l.id = lease.ID{}
	return err
}

func (l *oneLockLease) CheckAlive() bool {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return !l.id.IsZero() && time.Now().Before(l.until)
}

func (l *oneLockLease) OnLost(f func(error)) (stop func() bool) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	n := len(l.handlers)
	l.handlers[n] = f
	return func() bool {
		l.turn <- struct{}{}
		defer func() { <-l.turn }()
		_, ok := l.handlers[n]
		delete(l.handlers, n)
		return ok
	}
}
