package etcdlease

import (
	"context"
	"iter"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

const pageSize = 500

// List reads the keys in order, page by page. List skips keys that are not valid names of leases.
func (e *backend) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return engine.List(ctx, prefix, func(yield func(engine.NamedEntry, error) bool) error {
		key := e.prefix + prefix
		end := clientv3.GetPrefixRangeEnd(key)
		for {
			var res *clientv3.GetResponse
			if err := e.gate.Do(ctx, engine.Request{}, func() (err error) {
				res, err = e.get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
				return err
			}); err != nil {
				return e.describeError("list from", key, err)
			}
			for _, kv := range res.Kvs {
				name := strings.TrimPrefix(string(kv.Key), e.prefix)
				if lease.CheckName(name) != nil {
					continue
				}
				found, err := entry(kv)
				if !yield(engine.NamedEntry{Name: name, Entry: found}, err) {
					return nil
				}
			}
			if !res.More {
				return nil
			}
			key = string(res.Kvs[len(res.Kvs)-1].Key) + "\x00" // the first key after the last one
		}
	})
}
