package memory

import (
	"context"

	"github.com/fencedlease/lease"
)

// A watch is the channel of one call of Watch.
type watch chan struct{}

// Watch returns a channel of capacity 1 that gets a signal after every write of the record under name,
// and when the Store forgets the name. Several writes may share a signal. The name need not be known to
// the Store. The channel is closed when ctx ends, and not before. A watch has no goroutine.
//
// The passing of time sends no signal. Neither does a rise of the Epoch that all unknown names share.
//
// The errors are that of a context that is done and that of [lease.CheckName].
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
	close(w) // under the mutex, as every signal is sent
}

// signal sends a signal to the watches of name. The mutex is held.
func (sh *shard) signal(name string) {
	if sh.watches == nil { // as usual
		return
	}
	for w := range sh.watches[name] {
		select {
		case w <- struct{}{}:
		default: // the last signal was not received yet
		}
	}
}
