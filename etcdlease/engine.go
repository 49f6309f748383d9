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

// An engine is etcd as an [observe.Engine]. The version of a lease is the modification revision of
// its key, which no two writes in a cluster share.
type engine struct {
	client  *clientv3.Client
	prefix  string
	silence silence
}

// nobody is what a key is created with. It says no epoch: see floor. A key is never created with
// a lease: a writer who saw that there was none, and slept through a whole life of the key up to
// its deletion, would grant an old token.
var nobody = observe.Kept{}

// Load reads the key, and creates it if it does not exist.
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

// Open is Load in one exchange, even if the key does not exist. To etcd it is a write.
func (e *engine) Open(ctx context.Context, name string) (observe.Entry, error) {
	found, _, err := e.put(ctx, e.prefix+name, 0, nobody)
	return found, err
}

// Swap replaces the version old by next. If the key was deleted, the entry beside the conflict is
// empty.
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

// put writes next if revision is the last modification of the key, or 0 and the key does not exist.
// It returns the key as it is now, and whether it was written.
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

// entry reads what a key holds.
func entry(kv *mvccpb.KeyValue) (observe.Entry, error) {
	e := observe.Entry{Version: strconv.FormatInt(kv.ModRevision, 10), Revision: kv.ModRevision}
	if err := e.UnmarshalJSON(kv.Value); err != nil {
		return observe.Entry{}, fmt.Errorf("etcdlease: key %q: %w; put it right with etcdctl put, or free the lease with etcdctl del", kv.Key, err)
	}
	e.Record.Epoch = max(e.Record.Epoch, floor(kv.CreateRevision))
	return e, nil
}

// floor is the epoch of a key that was created at a revision and has granted nothing. The
// revision of a grant is above its epoch: for the first because it is above the creation, and
// from then on because both rise, one of them by one. So all epochs of the earlier lives of
// the key, which ended before this one was created, are below its floor.
func floor(created int64) uint64 { return uint64(created) - 1 }
