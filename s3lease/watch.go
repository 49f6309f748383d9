package s3lease

import (
	"context"
	"errors"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Watch reads the object, and then again every Options.PollInterval.
func (b *backend) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	last, err := b.look(ctx, name)
	if err != nil {
		return nil, err
	}
	signals := make(chan struct{}, 1)
	go func() {
		defer close(signals)
		every := time.NewTicker(b.poll)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			select {
			case <-ctx.Done():
				return
			case b.polls <- struct{}{}:
			}
			next, err := b.look(ctx, name)
			<-b.polls
			if err != nil {
				continue // the next poll compares with the same object
			}
			if needsSignal(last, next) {
				select {
				case signals <- struct{}{}:
				default:
				}
			}
			last = next
		}
	}()
	return signals, nil
}

// look returns the object, which is zero if there is none.
func (b *backend) look(ctx context.Context, name string) (next object, err error) {
	err = b.store.Observe(ctx, name, func(ctx context.Context, name string) (engine.Entry, error) {
		limited, cancel := context.WithTimeout(ctx, defaultTimeout) // mostPolls that hang would end all polls
		defer cancel()
		o, err := b.get(limited, keyOf(name))
		switch {
		case errors.Is(err, errAbsent):
			return engine.Entry{}, nil
		case err != nil:
			return engine.Entry{}, named(name, err)
		}
		next = o
		return o.entry(), nil
	})
	return next, err
}

// needsSignal reports whether an object has changed, unless by renewals alone.
func needsSignal(old, next object) bool {
	if old.Lease == nil || next.Lease == nil {
		return old.etag != next.etag
	}
	a, b := old.Lease, next.Lease
	renewed := a.Record == b.Record && a.Record.State == lease.Leased && a.Left <= b.Left
	return old.etag != next.etag && !renewed
}
