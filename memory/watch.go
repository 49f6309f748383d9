package memory

import (
	"context"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Watch returns a channel with a capacity of 1. The channel receives a signal after every write of the record
// with the given name, and when the Store deletes that record. One signal can stand for several writes. The
// name need not have a record. The channel is closed only when ctx ends. A watch has no goroutine.
//
// No signal is sent when a lease expires, because no record is written then. When a record is deleted, the
// Epoch of all names without a record can rise, but only the watches of the deleted name get a signal.
//
// Watch returns an error if ctx is done, or if [lease.CheckName] rejects the name.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	return s.shard(s.hash(name)).watch(ctx, name)
}

func (sh *shard) watch(ctx context.Context, name string) (<-chan struct{}, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.watches == nil {
		sh.watches = new(engine.Watches[struct{}])
	}
	return sh.watches.Add(ctx, name, struct{}{})
}

// signal sends a signal to every watch of the name. The caller holds the mutex of the shard.
func (sh *shard) signal(name string) {
	if sh.watches != nil {
		sh.watches.Signal(name)
	}
}
