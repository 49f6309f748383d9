package etcdlease

import (
	"context"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A backend implements [engine.Backend] with etcd. The version of a lease is the modification revision of its
// key, because no two writes in a cluster have the same revision.
type backend struct {
	client  *clientv3.Client
	prefix  string
	silence silenceLogger
	server  engine.Server
	gate    *engine.Gate // List enters it by itself; engine.Store does so for all other requests
}

// emptyValue is the value of a new key. A new key has no epoch of its own, so [firstEpoch] supplies one. The
// write that creates a key must not grant the lease, because the client would have to choose the token before
// that write. In the meantime, other clients could create the key, grant newer tokens, and delete the key, so
// that the late write would grant an old token.
var emptyValue = engine.Retained{}

// Load reads the key, or creates it if it does not exist.
func (e *backend) Load(ctx context.Context, name string) (engine.Entry, error) {
	key := e.prefix + name
	res, err := e.get(ctx, key)
	if err != nil {
		return engine.Entry{}, e.describeError("read", key, err)
	}
	if len(res.Kvs) == 0 {
		return e.Open(ctx, name)
	}
	return entry(res.Kvs[0])
}

// Revision implements [engine.RevisionReader]. It returns the revision of the whole cluster, because one
// sequence of revisions numbers the writes of all keys. The read is linearizable, so the revision is not out
// of date.
func (e *backend) Revision(ctx context.Context) (int64, error) {
	res, err := e.get(ctx, e.prefix, clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return res.Header.Revision, nil
}

// The method get reads keys. WithRequireLeader makes a member without a leader refuse the request at once,
// instead of leaving it unanswered.
func (e *backend) get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ended := e.sending()
	res, err := e.client.Get(clientv3.WithRequireLeader(ctx), key, o...)
	ended(err)
	return res, err
}

// Open is like Load but writes first, so that a new key takes one request instead of two.
func (e *backend) Open(ctx context.Context, name string) (engine.Entry, error) {
	found, _, err := e.writeIf(ctx, e.prefix+name, 0, emptyValue)
	return found, err
}

// Swap replaces the value of a key only if the revision of the key still equals the parameter old. Otherwise
// Swap returns [lease.ErrConflict] and the current entry, which is empty if the key was deleted.
func (e *backend) Swap(ctx context.Context, name, old string, next engine.Retained) (engine.Entry, error) {
	revision, err := strconv.ParseInt(old, 10, 64)
	if err != nil || revision <= 0 {
		return engine.Entry{}, fmt.Errorf("etcdlease: version %q is not of this store", old)
	}
	found, swapped, err := e.writeIf(ctx, e.prefix+name, revision, next)
	if err == nil && !swapped {
		err = lease.ErrConflict
	}
	return found, err
}

// writeIf writes a value if the key was last modified at the given revision. A revision of 0 means that the
// key must not exist. writeIf returns the current entry of the key, and reports whether it has written the
// value.
func (e *backend) writeIf(ctx context.Context, key string, revision int64, next engine.Retained) (engine.Entry, bool, error) {
	value, err := next.MarshalJSON()
	if err != nil {
		return engine.Entry{}, false, err
	}
	ended := e.sending()
	res, err := e.client.Txn(clientv3.WithRequireLeader(ctx)).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(value))).
		Else(clientv3.OpGet(key)).
		Commit()
	ended(err)
	if err != nil {
		return engine.Entry{}, false, e.describeError("write", key, err)
	}
	if res.Succeeded {
		now := res.Header.Revision
		if revision == 0 {
			next.Record.Epoch = firstEpoch(now)
		}
		return engine.Entry{Retained: next, Version: strconv.FormatInt(now, 10), Revision: now, Unwritten: revision == 0}, true, nil
	}
	kvs := res.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return engine.Entry{}, false, nil
	}
	found, err := entry(kvs[0])
	return found, false, err
}

func entry(kv *mvccpb.KeyValue) (engine.Entry, error) {
	e := engine.Entry{Version: strconv.FormatInt(kv.ModRevision, 10), Revision: kv.ModRevision}
	if err := e.UnmarshalJSON(kv.Value); err != nil {
		return engine.Entry{}, fmt.Errorf("etcdlease: key %q: %w; correct it with etcdctl put, or free the lease with etcdctl del", kv.Key, err)
	}
	e.Unwritten = e.Record.Epoch == 0
	e.Record.Epoch = max(e.Record.Epoch, firstEpoch(kv.CreateRevision))
	return e, nil
}

// firstEpoch returns the epoch of a new key, which is one less than the revision at which the key was
// created. For example, a key that is created at revision 100 has the epoch 99. Each grant then raises the
// epoch by one. A grant also writes the key, which raises the revision by at least one, so the epoch stays
// below the revision. If the key is deleted at revision 150, all its epochs are below 150. A new key then has
// a revision above 150, so the first epoch of the new key is higher than every epoch of the old key.
func firstEpoch(created int64) uint64 { return uint64(created) - 1 }
