package kubelease

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A backend implements [engine.Backend] over an API server. The version of a lease consists of the uid and
// the resourceVersion of its object, because no two writes in a cluster have the same resourceVersion and
// uid.
type backend struct {
	client     coordinationclient.CoordinationV1Interface
	namespace  string
	cache      objectCache
	server     engine.Server
	closeFirst atomic.Bool                       // the next request tells the transport to close its connections
	gate       *engine.Gate                      // List and Watch enter it by themselves; engine.Store does so for all other requests
	note       func(name string, e engine.Entry) // stores the entry that a watch has received
}

// Load reads the object. If the object does not exist, Load creates it without a record, and a grant then
// updates the object. If one request both created the object and granted the lease, a client could grant an
// old token in these steps:
//
//  1. The client finds that the object does not exist.
//  2. Other clients create the object, grant tokens, and delete the object.
//  3. The first client creates the object with an old token.
func (e *backend) Load(ctx context.Context, name string) (engine.Entry, error) {
	key, err := objectName(name)
	if err != nil {
		return engine.Entry{}, err
	}
	for {
		object, err := e.get(ctx, key)
		if apierrors.IsNotFound(err) {
			object, err = e.create(ctx, key)
			if apierrors.IsAlreadyExists(err) {
				continue
			}
		}
		if err != nil {
			return engine.Entry{}, err
		}
		return e.entry(object)
	}
}

// Open calls Load, because it must first find out whether the object exists.
func (e *backend) Open(ctx context.Context, name string) (engine.Entry, error) {
	return e.Load(ctx, name)
}

// The method entry decodes the lease that an object contains. It also stores the object in the cache, for the
// next update.
func (e *backend) entry(object *coordinationv1.Lease) (engine.Entry, error) {
	found, err := read(object)
	if err != nil {
		return engine.Entry{}, e.describeObjectError(object.Name, err)
	}
	e.cache.remember(object, found.Revision)
	return found, nil
}

// The method get reads an object. The request has no resourceVersion, so that the API server reads the object
// from etcd and not from its own cache.
func (e *backend) get(ctx context.Context, key string) (*coordinationv1.Lease, error) {
	return send(ctx, e, "get", key, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return e.client.Leases(e.namespace).Get(ctx, key, metav1.GetOptions{})
	})
}

// Revision implements [engine.RevisionReader]. It returns the resourceVersion of a list, because one sequence
// of resourceVersions numbers the writes of all objects. A list that was requested without a resourceVersion
// is not older than the request.
func (e *backend) Revision(ctx context.Context) (int64, error) {
	objects, err := e.list(ctx, "*", metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(objects.ResourceVersion, 10, 64)
}

func (e *backend) list(ctx context.Context, key string, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	return send(ctx, e, "list", key, func(ctx context.Context) (*coordinationv1.LeaseList, error) {
		return e.client.Leases(e.namespace).List(ctx, o)
	})
}

func (e *backend) create(ctx context.Context, key string) (*coordinationv1.Lease, error) {
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: key, Namespace: e.namespace}}
	return send(ctx, e, "create", key, func(ctx context.Context) (*coordinationv1.Lease, error) {
		return e.client.Leases(e.namespace).Create(ctx, object, metav1.CreateOptions{})
	})
}

// The method update replaces an object if its uid and its resourceVersion have not changed.
//
// The client must not retry the request by itself, because some errors with a Retry-After header leave open
// whether the API server has applied the write. If the server has applied it, a retry would fail with a
// conflict, and the caller would wrongly conclude that the write was not applied.
func (e *backend) update(ctx context.Context, object *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return send(ctx, e, "update", object.Name, func(ctx context.Context) (*coordinationv1.Lease, error) {
		updated := new(coordinationv1.Lease)
		return updated, e.client.RESTClient().Put().Namespace(e.namespace).Resource("leases").Name(object.Name).
			Body(object).MaxRetries(0).Do(ctx).Into(updated)
	})
}

// Swap replaces the record in an object only if the version of the object still equals the parameter old.
func (e *backend) Swap(ctx context.Context, name, old string, next engine.Retained) (engine.Entry, error) {
	key, err := objectName(name)
	if err != nil {
		return engine.Entry{}, err
	}
	if isForeign(next.Record.ID) {
		return e.refuseForeign(ctx, key, old)
	}
	object := e.cache.find(key, old)
	if object == nil {
		var found engine.Entry
		if found, object, err = e.reload(ctx, key, old); err != nil {
			return found, err
		}
	}
	object = object.DeepCopy()
	if err := write(object, next, time.Now()); err != nil {
		return engine.Entry{}, e.describeObjectError(key, err)
	}
	updated, err := e.update(ctx, object)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return engine.Entry{}, lease.ErrConflict
	case err != nil:
		// The update may have been applied, so the next update must read the object first. Otherwise the API
		// server could reject the next update with a conflict, and three exchanges would be necessary instead
		// of two: the rejected update, a read, and another update. If a server was slow for a moment, these
		// additional requests would keep it slow.
		e.cache.Remove(key)
		return engine.Entry{}, err
	}
	return e.entry(updated)
}

// The method reload reads the object again. It returns lease.ErrConflict if the object no longer exists or
// has another version.
func (e *backend) reload(ctx context.Context, key, version string) (engine.Entry, *coordinationv1.Lease, error) {
	object, err := e.get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return engine.Entry{}, nil, lease.ErrConflict
	case err != nil:
		return engine.Entry{}, nil, err
	}
	found, err := e.entry(object)
	if err == nil && found.Version != version {
		err = lease.ErrConflict
	}
	return found, object, err
}

// refuseForeign returns lease.ErrForeign for a request that would end or change the lease of another program.
// refuseForeign first reads the object again, because the other program might have released the lease. If the
// object no longer exists or its version has changed, refuseForeign returns lease.ErrConflict.
func (e *backend) refuseForeign(ctx context.Context, key, version string) (engine.Entry, error) {
	found, _, err := e.reload(ctx, key, version)
	if err == nil {
		err = lease.ErrForeign
	}
	return found, err
}
