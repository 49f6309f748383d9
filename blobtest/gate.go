package blobtest

import (
	"context"
	"sync"
)

// gates holds a lock, called a gate, for each resource in use. A request enters the gate, checks the
// lease, reads or changes the resource, and leaves the gate. So no other request can change the lease
// between the check and the use. It may wait for the authority while it holds the gate. A gate is a
// channel and not a mutex, because a request must stop waiting when its context ends. A gate takes memory
// only while it is held or waited for.
type gates struct {
	mu sync.Mutex
	m  map[string]*gate
}

type gate struct {
	slot  chan struct{} // holds a value while a request holds the gate
	users int           // requests that hold the gate or wait for it
}

// enter waits until no other request holds the gate of the named resource, and then takes it. If the
// error is nil, the caller must call the returned function once, to release the gate.
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
