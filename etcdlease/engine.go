package etcdlease

import (
	"context"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// An engine implements [observe.Engine] with etcd. The version of a lease is the modification
// revision of its key. No two writes in a cluster have the same revision.
type engine struct {
	client  *clientv3.Client
	prefix  string
	silence silence
}

// nobody is the value of a new key. It has no epoch of its own: see [floor]. An acquire never
// creates a key with a lease in it, because a slow client could then grant an old token. Such a
// client could see that the key does not exist, and pause while other clients create, use and
// delete the key.
var nobody = observe.Kept{}

// Load reads the key. If the key does not exist, Load creates it.
func (e *engine) Load(ctx context.Context, name string) (observe.Entry, error) {
	key := e.prefix + name
	res, err := e.get(ctx, key)
	if err != nil {
		return observe.Entry{}, e.explain("read", key, err)
	}
	if len(res.Kvs) == 0 {
		return e.Open(ctx, name)
	}
	return entry(res.Kvs[0])
}

// get reads keys.
func (e *engine) get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	e.silence.sending()
	res, err := e.client.Get(ctx, key, o...)
	e.silence.ended(e.client, err)
	return res, err
}

// Open is like Load, but it is one exchange even if the key does not exist. For etcd, it is a
// write.
func (e *engine) Open(ctx context.Context, name string) (observe.Entry, error) {
	found, _, err := e.put(ctx, e.prefix+name, 0, nobody)
	return found, err
}

// Swap replaces the version old of the key by next. If the key was deleted, Swap returns
// [lease.ErrConflict] and an empty entry.
func (e *engine) Swap(ctx context.Context, name, old string, next observe.Kept) (observe.Entry, error) {
	revision, err := strconv.ParseInt(old, 10, 64)
	if err != nil || revision <= 0 {
		return observe.Entry{}, fmt.Errorf("etcdlease: version %q is not of this store", old)
	}
	found, swapped, err := e.put(ctx, e.prefix+name, revision, next)
	if err == nil && !swapped {
		err = lease.ErrConflict
	}
	return found, err
}

// put writes next if the key was last modified at the given revision. If revision is 0, put writes
// next if the key does not exist. It returns the current entry of the key, and whether it wrote the
// key.
func (e *engine) put(ctx context.Context, key string, revision int64, next observe.Kept) (observe.Entry, bool, error) {
	value, err := next.MarshalJSON()
	if err != nil {
		return observe.Entry{}, false, err
	}
	e.silence.sending()
	res, err := e.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(key)).
		Commit()
	e.silence.ended(e.client, err)
	if err != nil {
		return observe.Entry{}, false, e.explain("write", key, err)
	}
	if res.Succeeded {
		now := res.Header.Revision
		if revision == 0 {
			next.Record.Epoch = floor(now)
		}
		return observe.Entry{Kept: next, Version: strconv.FormatInt(now, 10), Revision: now}, true, nil
	}
	kvs := res.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return observe.Entry{}, false, nil
	}
	found, err := entry(kvs[0])
	return found, false, err
}

// entry parses the value of a key.
func entry(kv *mvccpb.KeyValue) (observe.Entry, error) {
	e := observe.Entry{Version: strconv.FormatInt(kv.ModRevision, 10), Revision: kv.ModRevision}
	if err := e.UnmarshalJSON(kv.Value); err != nil {
		return observe.Entry{}, fmt.Errorf("etcdlease: key %q: %w; put it right with etcdctl put, or free the lease with etcdctl del", kv.Key, err)
	}
	e.Record.Epoch = max(e.Record.Epoch, floor(kv.CreateRevision))
	return e, nil
}

// floor returns the first epoch of a key that was created at the revision created. Each epoch of
// the key is below the revision of its grant. The first grant has a higher revision than the
// creation of the key. Each further grant raises the epoch by one and the revision by at least one.
// If a key is deleted and created again, all its earlier epochs are therefore below its new floor.
func floor(created int64) uint64 { return uint64(created) - 1 }
