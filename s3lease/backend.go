package s3lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A backend implements engine.Backend. The version of a lease is the revision and the ETag of its object.
type backend struct {
	client         *s3.Client
	bucket, prefix string
	gate           *engine.Gate
	store          *engine.Store
	checkOnce      func(context.Context) error
	engine.Poller  // has the method Watch
}

// mostRequests limits the concurrent requests of a Store. S3 accepts 3,500 writes a second under a prefix.
const mostRequests = 64

// mostPolls limits how many objects are read for watches at the same time, so that an acquire does not have
// to wait for thousands of such reads.
const mostPolls = 16

// unknownETag stands for the ETag of an object that this Store has written, if another write replaced the
// object before the Store got the ETag. The next swap of the Store is then refused.
const unknownETag = `"unknown"`

// mostTries is the maximum number of attempts of Load to create an object. An attempt fails if another
// process creates the object first. Load then needs another attempt only if the object is deleted before Load
// can read it.
const mostTries = 10

// Load reads the object. If there is no object, Load creates one without a lease. Load then reads the object
// to learn when the service created it, because the first epoch of the lease is computed from that time. Load
// does not create the object together with a lease, because such a write could arrive late. In the meantime,
// another process could create the object and grant newer tokens, and the object could be deleted. The late
// write would then grant an old token.
func (b *backend) Load(ctx context.Context, name string) (engine.Entry, error) {
	if err := b.checkOnce(ctx); err != nil {
		return engine.Entry{}, err
	}
	key := keyOf(name)
	for range mostTries {
		o, err := b.readLease(ctx, name)
		if err != nil || o.exists() {
			return o.entry(), err
		}
		_, err = b.put(ctx, key, "", object{Name: name, Write: rand.Text()})
		if err != nil && !errors.Is(err, lease.ErrConflict) {
			return engine.Entry{}, err
		}
	}
	return engine.Entry{}, fmt.Errorf("s3lease: the service has refused %d times to create the object %q of bucket %q, and each time said that there is none", mostTries, b.prefix+key, b.bucket)
}

// readLease reads the object of a name. If the object is corrupt, the error contains the name.
func (b *backend) readLease(ctx context.Context, name string) (object, error) {
	o, err := b.get(ctx, keyOf(name))
	if lease.CodeOf(err) == lease.ErrCorrupt {
		err = &lease.OpError{Op: "read", Name: name, Err: err}
	}
	return o, err
}

func (b *backend) Open(ctx context.Context, name string) (engine.Entry, error) {
	return b.Load(ctx, name)
}

// Swap replaces the object if the object still has the ETag that is a part of the parameter version. If the
// write is refused, it may still have been carried out, because a proxy may have sent it twice. So Swap then
// reads the object, which shows whether the write was carried out, even if another write has replaced the
// object since.
func (b *backend) Swap(ctx context.Context, name, version string, next engine.Retained) (engine.Entry, error) {
	o, old, err := after(name, version, next)
	if err == nil {
		err = b.checkOnce(ctx) // the version may come from a list or a watch, before any check
	}
	if err != nil {
		return engine.Entry{}, err
	}
	o.etag, err = b.put(ctx, keyOf(name), old, o)
	if !errors.Is(err, lease.ErrConflict) {
		return o.entry(), err
	}
	current, reading := b.readLease(ctx, name)
	switch {
	case reading != nil:
		return engine.Entry{}, reading
	case current.Write == o.Write:
		return current.entry(), nil
	case current.replaced(o.mark()):
		o.etag = unknownETag
		return o.entry(), nil
	}
	return current.entry(), err
}

// The method check finds out whether the service supports both conditions. It sends two writes. The first one
// requires that the object checkKey does not exist. Such a write can succeed only once, so if it succeeds,
// check sends it again, and the service must refuse it. The second one requires an ETag that no object has,
// so the service must always refuse it.
func (b *backend) check(ctx context.Context) error {
	for _, c := range []struct{ header, etag string }{{"If-None-Match", ""}, {"If-Match", `"00000000000000000000000000000000"`}} {
		_, err := b.put(ctx, checkKey, c.etag, object{Write: rand.Text()})
		if err == nil && c.etag == "" {
			_, err = b.put(ctx, checkKey, c.etag, object{Write: rand.Text()})
		}
		switch {
		case err == nil:
			return lease.Permanent(fmt.Errorf("s3lease: the service of bucket %q ignores the header %s of a write, so it would grant a lease to every process that asks; use a service that honours it", b.bucket, c.header))
		case !errors.Is(err, lease.ErrConflict):
			return err
		}
	}
	return nil
}
