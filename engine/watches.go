package engine

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
)

// A Watches value contains the channels of all watches of a store. A store with several connections can use a
// separate value for each connection. For each watched name, Watches also stores a value of type V, in which
// the store can record what it has signalled last, such as a version. A store that needs no such value uses
// struct{}.
//
// The zero value is ready to use, and safe for concurrent use. No method blocks, and a watch needs no
// goroutine.
type Watches[V any] struct {
	mu     sync.Mutex
	names  map[string]*watched[V]
	closed error // the reason passed to Close; nil before that

	some atomic.Bool // whether any name is watched; if not, Signal needs no lock
}

type watched[V any] struct {
	value V
	chans map[chan struct{}]func() bool // the value is the function that stops the AfterFunc of the context of the watch
}

// Add returns the channel of a new watch. The channel follows the rules of [lease.Watcher], and so is closed
// when ctx ends. If the name has no other watch, Add stores the last parameter as the value of the name.
// After Close, Add returns the reason that was passed to Close.
func (w *Watches[V]) Add(ctx context.Context, name string, initial V) (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return nil, w.closed
	}
	of := w.names[name]
	if of == nil {
		if w.names == nil {
			w.names = map[string]*watched[V]{}
		}
		of = &watched[V]{initial, map[chan struct{}]func() bool{}}
		w.names[name] = of
		w.some.Store(true)
	}
	c := make(chan struct{}, 1)
	of.chans[c] = context.AfterFunc(ctx, func() { w.remove(name, of, c) })
	return c, nil
}

// remove closes the channel of a watch whose context has ended, unless the channel is already closed.
func (w *Watches[V]) remove(name string, of *watched[V], c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, open := of.chans[c]; !open {
		return
	}
	close(c) // under the lock, so that nothing is sent on a closed channel
	delete(of.chans, c)
	if len(of.chans) > 0 {
		return
	}
	delete(w.names, name)
	if len(w.names) == 0 {
		w.names = nil // a map does not shrink by itself
		w.some.Store(false)
	}
}

// Signal signals all watches of a name. If the reader of a watch has not received the previous signal yet,
// the watch does not get another one.
func (w *Watches[V]) Signal(name string) {
	if w.some.Load() {
		w.Update(name, func(*V) bool { return true })
	}
}

// Update calls f with the value of a name, which f may change, and signals the watches of the name if f
// returns true. If the name has no watch, f is not called. f must not call a method of w.
func (w *Watches[V]) Update(name string, f func(v *V) (signal bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.names[name]
	if of == nil || !f(&of.value) {
		return
	}
	for c := range of.chans {
		select {
		case c <- struct{}{}:
		default: // the last signal was not received yet
		}
	}
}

// All returns the watched names with their values.
func (w *Watches[V]) All() map[string]V {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]V, len(w.names))
	for name, of := range w.names {
		all[name] = of.value
	}
	return all
}

// Close closes the channels of all watches. A closed channel tells its reader that signals may have been
// missed, so the reader watches again. From then on, Add and Err return the reason. If w is already closed,
// Close does nothing and returns false.
func (w *Watches[V]) Close(reason error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return false
	}
	w.closed = reason
	for of := range maps.Values(w.names) {
		for c, stop := range of.chans {
			stop()
			close(c)
		}
		clear(of.chans)
	}
	w.names = nil
	w.some.Store(false)
	return true
}

// Err returns the reason that was passed to Close, or nil before that.
func (w *Watches[V]) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}
