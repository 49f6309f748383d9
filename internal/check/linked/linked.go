// Package linked sends the requests of a client through a function of a test, which can delay or lose them.
// The conformance tests of the engines use it for the hooks Connect of leasetest.Options. A Listener makes
// connections within the process.
package linked

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/wrap"
	"github.com/fencedlease/lease/leasetest"
)

// Transport returns an http.RoundTripper that sends its requests with next, and passes each of them through
// transmit. An answer has arrived when its whole body has arrived.
func Transport(transmit leasetest.Transmit, next http.RoundTripper) http.RoundTripper {
	return transport{transmit, next}
}

type transport struct {
	transmit leasetest.Transmit
	next     http.RoundTripper
}

func (l transport) RoundTrip(req *http.Request) (res *http.Response, err error) {
	err = l.transmit(req.Context(), func() (err error) {
		if res, err = l.next.RoundTrip(req); err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(bytes.NewReader(body))
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Store returns a store that passes every call of Load, Swap and List on to s through transmit. A List is
// one request, even if it returns many entries.
func Store(s lease.Store, transmit leasetest.Transmit) lease.Store {
	return wrap.Store(&store{s, transmit}, s)
}

type store struct {
	lease.Store
	transmit leasetest.Transmit
}

func (l *store) Load(ctx context.Context, name string) (snap lease.Snapshot, err error) {
	return l.send(ctx, func() (lease.Snapshot, error) { return l.Store.Load(ctx, name) })
}

func (l *store) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	return l.send(ctx, func() (lease.Snapshot, error) { return l.Store.Swap(ctx, name, old, next) })
}

// send makes one call of the store. An error that the store returns is an answer like any other.
func (l *store) send(ctx context.Context, call func() (lease.Snapshot, error)) (snap lease.Snapshot, err error) {
	lost := l.transmit(ctx, func() error {
		snap, err = call()
		return nil
	})
	if lost != nil {
		return lease.Snapshot{}, lost
	}
	return snap, err
}

// List panics if the store is not a lease.Lister.
func (l *store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	type item struct {
		entry lease.Entry
		err   error
	}
	return func(yield func(lease.Entry, error) bool) {
		var all []item
		lost := l.transmit(ctx, func() error {
			for e, err := range l.Store.(lease.Lister).List(ctx, prefix) {
				all = append(all, item{e, err})
			}
			return nil
		})
		if lost != nil {
			yield(lease.Entry{}, lost)
			return
		}
		for _, i := range all {
			if !yield(i.entry, i.err) {
				return
			}
		}
	}
}
