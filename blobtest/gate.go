package blobtest

import (
	"context"
	"sync"
)

// gates lets one request at a time to each name, so that the answer of the lease and the
// change of the resource are one step. A gate is not a mutex, since the authority is asked
// while it is held: waiting for it ends with the context. A name that nobody uses costs
// nothing.
type gates struct {
	mu sync.Mutex
	m  map[string]*gate
}

type gate struct {
	slot  chan struct{} // holds a value while somebody is inside
	users int           // inside or waiting
}

// enter waits for the gate of name; the caller calls leave once if the error is nil.
func (g *gates) enter(ctx context.Context, name string) (leave func(), err error) {
	g.mu.Lock()
	if g.m == nil {
		g.m = map[string]*gate{}
	}
	t := g.m[name]
	if t == nil {
		t = &gate{slot: make(chan struct{}, 1)}
		g.m[name] = t
	}
	t.users++
	g.mu.Unlock()

	select {
	case t.slot <- struct{}{}:
		return func() {
			<-t.slot
			g.done(name, t)
		}, nil
	case <-ctx.Done():
		g.done(name, t)
		return nil, ctx.Err()
	}
}

func (g *gates) done(name string, t *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(g.m, name)
	}
}
