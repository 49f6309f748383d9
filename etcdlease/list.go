package etcdlease

import (
	"context"
	"iter"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// List returns the leases whose names begin with prefix, sorted by name. List reads a few hundred
// keys in each exchange, with linearizable reads. See [lease.Lister].
//
// List reports an upper bound of the time that a lease has left, because the Store counts this time
// from its first observation of the lease. So if a holder has crashed, List reports its lease as
// leased until this Store has observed the lease for its whole duration. To see which leases are
// still being renewed, call List again after the longest duration of a lease.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// pageSize is the number of keys that List reads in one exchange.
const pageSize = 500

// List reads the keys in order, page by page. It skips keys that are not valid names of leases.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		key := e.prefix + prefix
		end := clientv3.GetPrefixRangeEnd(key)
		for {
			res, err := e.get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
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
