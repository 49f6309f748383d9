package blobtest

import (
	"context"
	"sync"
)

// gates admit one request at a time for each name. The answer of the lease and the change of the
// resource are therefore one step. A gate is not a mutex: the authority is asked while it is held, so
// waiting for it must end with the context. A name that no request uses takes no memory.
type gates struct {
	mu sync.Mutex
	m  map[string]*gate
}

type gate struct {
	slot  chan struct{} // holds a value while a request is inside
	users int           // requests that are inside or wait
}

// enter waits until no other request is inside the gate of name. If the error is nil, the caller must
// call leave once.
func (g *gates) enter(ctx context.Context, name string) (leave func(), err error) {
	t := g.join(name)
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

func (g *gates) join(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.m == nil {
		g.m = map[string]*gate{}
	}
	t := g.m[name]
	if t == nil {
		t = &gate{slot: make(chan struct{}, 1)}
		g.m[name] = t
	}
	t.users++
	return t
}

func (g *gates) done(name string, t *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(g.m, name)
	}
}
