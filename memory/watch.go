package memory

import (
	"context"

	"github.com/fencedlease/lease"
)

// A watch is the channel of one call of Watch.
type watch chan struct{}

// Watch returns a channel of capacity 1 that gets at least one signal after any swap of the
// record under name since Watch returned, and after the name was forgotten. The watch stays
// with the name, whether the Store knows it or not. It is closed once the context is done,
// and never lost before; until then it costs memory but no goroutine.
//
// The passing of time changes no record and sends nothing, and neither does the rise of the
// Epoch that all unknown names share.
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

// signal tells the watches of name. The mutex is held.
func (sh *shard) signal(name string) {
	if sh.watches == nil { // and mostly it is
		return
	}
	for w := range sh.watches[name] {
		select {
		case w <- struct{}{}:
		default: // one is there that nobody has taken yet
		}
	}
}
