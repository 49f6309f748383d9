package blobtest

import (
	"context"
	"sync"
)

// gates holds a lock, called a gate, for each resource in use. A request holds the gate of its resource while
// it checks the lease and then reads or changes the resource, so no other request can change the lease in
// between. Meanwhile, the request may wait for the authority. A gate is a channel and not a mutex, because a
// request must stop waiting when its context ends. A gate takes memory only while a request uses it.
type gates struct {
	mu sync.Mutex
	m  map[string]*gate
}

type gate struct {
	slot  chan struct{} // holds a value while a request holds the gate
	users int           // the number of requests that hold the gate or wait for it
}

// The method enter waits until no other request holds the gate of the named resource, and then takes the
// gate. Unless the method returns an error, the caller must call the returned function once to release the
// gate.
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
