package memory

import (
	"context"

	"github.com/fencedlease/lease"
)

// A watch is the channel that one call of Watch returned.
type watch chan struct{}

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
	sh := s.shard(s.hash(name))
	w := make(watch, 1)
	sh.watch(name, w)
	context.AfterFunc(ctx, func() { sh.unwatch(name, w) })
	return w, nil
}

func (sh *shard) watch(name string, w watch) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.watches == nil {
		sh.watches = make(map[string]map[watch]struct{})
	}
	if sh.watches[name] == nil {
		sh.watches[name] = make(map[watch]struct{})
	}
	sh.watches[name][w] = struct{}{}
}

func (sh *shard) unwatch(name string, w watch) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.watches[name], w)
	if len(sh.watches[name]) == 0 {
		delete(sh.watches, name)
	}
	if len(sh.watches) == 0 {
		sh.watches = nil // a map does not shrink by itself
	}
	close(w) // under the mutex, so that the method signal never sends on a closed channel
}

// signal sends a signal to every watch of the name. The caller holds the mutex of the shard.
func (sh *shard) signal(name string) {
	if sh.watches == nil { // the usual case
		return
	}
	for w := range sh.watches[name] {
		select {
		case w <- struct{}{}:
		default: // the previous signal was not received yet
		}
	}
}
