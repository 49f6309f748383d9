package etcdlease

import (
	"context"
	"iter"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// List returns the leases whose names begin with prefix, sorted by name, by linearizable reads of
// some hundred keys each. What a lease has left is an upper bound: a Store that sees a lease for
// the first time counts from there. So a lease whose holder is dead is shown as leased until this
// Store has seen it for as long as it lasts. List again after that time to see which leases are
// renewed.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// page is how many keys a list reads at once.
const page = 500

// List reads the keys in order, a page at a time. A key that is not the name of a lease is left
// out.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		key := e.prefix + prefix
		end := clientv3.GetPrefixRangeEnd(key)
		for {
			res, err := e.get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(page))
			if err != nil {
				yield(observe.NamedEntry{}, e.explain("list from", key, err))
				return
			}
			for _, kv := range res.Kvs {
				name := strings.TrimPrefix(string(kv.Key), e.prefix)
				if lease.CheckName(name) != nil {
					continue
				}
				found, err := entry(kv)
				if !yield(observe.NamedEntry{Name: name, Entry: found}, err) {
					return
				}
			}
			if !res.More {
				return
			}
			key = string(res.Kvs[len(res.Kvs)-1].Key) + "\x00" // the first key after the last one
		}
	}
}
