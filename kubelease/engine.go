package kubelease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// An engine is an API server as package observe wants it. The version of a lease is the uid and the
// resourceVersion of its object, which no two writes in a cluster share.
type engine struct {
	client    coordinationclient.CoordinationV1Interface
	namespace string
	memory    memory
	note      func(name string, e observe.Entry) // takes note of what a watch shows
}

// Load reads the object, and creates it if it does not exist.
//
// An object is never created with a lease. Between the read that found no object and the creation,
// another client may have created one, granted tokens and deleted it; the token of such a grant would
// not be newer. An object without a record grants nothing, and a grant is an update of that object.
func (e *engine) Load(ctx context.Context, name string) (observe.Entry, error) {
	key, err := objectName(name)
	if err != nil {
		return observe.Entry{}, err
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
			return observe.Entry{}, err
		}
		return e.entry(object)
	}
}

// Open is Load: to find out whether the object exists takes an exchange in any case.
func (e *engine) Open(ctx context.Context, name string) (observe.Entry, error) {
	return e.Load(ctx, name)
}

// entry reads an object, and remembers it.
func (e *engine) entry(object *coordinationv1.Lease) (observe.Entry, error) {
	found, err := read(object)
	if err != nil {
		return observe.Entry{}, e.explainObject(object.Name, err)
	}
	e.memory.keep(object, found.Revision)
	return found, nil
}

// get reads an object, from etcd and not from a cache: it sets no resourceVersion.
func (e *engine) get(ctx context.Context, key string) (*coordinationv1.Lease, error) {
	object, err := e.client.Leases(e.namespace).Get(ctx, key, metav1.GetOptions{})
	return object, e.explain("get", key, err)
}

// create creates an object without a holder and without a record.
func (e *engine) create(ctx context.Context, key string) (*coordinationv1.Lease, error) {
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: key, Namespace: e.namespace}}
	created, err := e.client.Leases(e.namespace).Create(ctx, object, metav1.CreateOptions{})
	return created, e.explain("create", key, err)
}

// update replaces an object whose uid and resourceVersion are still those that it has.
//
// The client must not repeat the request by itself. Some errors are answered with Retry-After though
// the write may have been applied. A second one would then conflict with the first, and a conflict
// says that nothing was written.
func (e *engine) update(ctx context.Context, object *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	updated := new(coordinationv1.Lease)
	err := e.client.RESTClient().Put().Namespace(e.namespace).Resource("leases").Name(object.Name).
		Body(object).MaxRetries(0).Do(ctx).Into(updated)
	return updated, e.explain("update", object.Name, err)
}

// Swap puts next in the place of the version old.
func (e *engine) Swap(ctx context.Context, name, old string, next observe.Kept) (observe.Entry, error) {
	key, err := objectName(name)
	if err != nil {
		return observe.Entry{}, err
	}
	if isForeign(next.Record.ID) {
		return e.refuseForeign(ctx, key, old)
	}
	object := e.memory.get(key, old)
	if object == nil {
		var found observe.Entry
		if found, object, err = e.reload(ctx, key, old); err != nil {
			return found, err
		}
	}
	object = object.DeepCopy()
	if err := write(object, next, time.Now()); err != nil {
		return observe.Entry{}, e.explainObject(key, err)
	}
	updated, err := e.update(ctx, object)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return observe.Entry{}, lease.ErrConflict
	case err != nil:
		return observe.Entry{}, err
	}
	return e.entry(updated)
}

// reload reads the object again. If it is not of the version, or gone, the error is a conflict.
func (e *engine) reload(ctx context.Context, key, version string) (observe.Entry, *coordinationv1.Lease, error) {
	object, err := e.get(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return observe.Entry{}, nil, lease.ErrConflict
	case err != nil:
		return observe.Entry{}, nil, err
	}
	found, err := e.entry(object)
	if err == nil && found.Version != version {
		err = lease.ErrConflict
	}
	return found, object, err
}

// refuseForeign refuses a request that would end or change the lease of another kind of program, if
// that program still has it: a refusal rests on what was read within the call.
func (e *engine) refuseForeign(ctx context.Context, key, version string) (observe.Entry, error) {
	found, _, err := e.reload(ctx, key, version)
	if err == nil {
		err = lease.ErrForeign
	}
	return found, err
}
