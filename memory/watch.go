package memory

import (
	"context"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// Watch returns a channel with a capacity of 1. It receives a signal after every write of the record with
// the given name, and when the Store forgets the name. One signal can stand for several writes. The name
// can be unknown to the Store. The channel is closed only when ctx ends. A watch has no goroutine.
//
// No signal is sent when a lease expires, because nothing is written. When the Store forgets a name, the
// watches of other unknown names get no signal, although the Epoch that they all share can rise.
//
// Watch returns an error if ctx is done, or if [lease.CheckName] refuses the name.
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
