package s3lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A backend implements engine.Backend. The version of a lease is the revision in its object and the object's ETag.
type backend struct {
	client         *s3.Client
	bucket, prefix string
	gate           *engine.Gate
	store          *engine.Store
	poller         engine.Poller
	checking       chan struct{} // holds a value while the service is being checked
	checked        atomic.Bool
}

// mostRequests bounds the requests of a Store that are under way. S3 takes 3,500 writes a second under a prefix.
const mostRequests = 64

// mostPolls bounds how many objects are read for watches at a time, so that an acquire does not wait for thousands of
// them.
const mostPolls = 16

// unknownETag takes the place of the ETag of an object that was replaced before its ETag was known. The
// next swap is refused.
const unknownETag = `"unknown"`

// mostTries is how often Load tries to create an object. Others may create and delete it at the same time.
const mostTries = 10

// Load reads the object. If there is none, Load creates an object that grants nothing. The epochs begin at the
// time at which the service has created the object, and that time is known only when the object is read. A write
// that creates an object and grants a lease at once might arrive so late that another lease was granted and
// deleted before, with newer tokens.
func (b *backend) Load(ctx context.Context, name string) (engine.Entry, error) {
	if err := b.checkOnce(ctx); err != nil {
		return engine.Entry{}, err
	}
	key := keyOf(name)
	for range mostTries {
		o, err := b.get(ctx, key)
		if err == nil {
			return o.entry(), nil
		}
		if errors.Is(err, errAbsent) {
			_, err = b.put(ctx, key, "", object{Name: name, Write: rand.Text()})
		}
		if err != nil && !errors.Is(err, lease.ErrConflict) {
			return engine.Entry{}, named(name, err)
		}
	}
	return engine.Entry{}, fmt.Errorf("s3lease: the service has refused %d times to create the object %q of bucket %q, and each time said that there is none", mostTries, b.prefix+key, b.bucket)
}

// named adds the name of a lease whose object is corrupt.
func named(name string, err error) error {
	if lease.CodeOf(err) == lease.ErrCorrupt {
		err = &lease.OpError{Op: "read", Name: name, Err: err}
	}
	return err
}

// Open does what Load does.
func (b *backend) Open(ctx context.Context, name string) (engine.Entry, error) {
	return b.Load(ctx, name)
}

// Swap replaces the object if it still has the ETag in the version. A refusal need not mean that nothing was
// written, because a proxy may have repeated a request whose answer was lost. So after a refusal Swap
// reads the object, which the caller needs anyway. From the object it learns whether its own write was carried out,
// even if another write has replaced it since.
func (b *backend) Swap(ctx context.Context, name, version string, next engine.Retained) (engine.Entry, error) {
	o, old, err := after(name, version, next)
	if err == nil {
		err = b.checkOnce(ctx) // a list or a watch may have read the version
	}
	if err != nil {
		return engine.Entry{}, err
	}
	key := keyOf(name)
	o.etag, err = b.put(ctx, key, old, o)
	if !errors.Is(err, lease.ErrConflict) {
		return o.entry(), err
	}
	current, reading := b.get(ctx, key)
	switch {
	case errors.Is(reading, errAbsent):
		return engine.Entry{}, err
	case reading != nil:
		return engine.Entry{}, named(name, reading)
	case current.Write == o.Write:
		return current.entry(), nil
	case current.replaced(o.mark()):
		o.etag = unknownETag
		return o.entry(), nil
	}
	return current.entry(), err
}

// checkOnce checks the service, unless that was done already. One check serves all calls that wait for it.
func (b *backend) checkOnce(ctx context.Context) error {
	if b.checked.Load() {
		return nil
	}
	select {
	case b.checking <- struct{}{}:
		defer func() { <-b.checking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.checked.Load() {
		return nil
	}
	err := b.check(ctx)
	b.checked.Store(err == nil)
	return err
}

// check finds out whether the service honours both conditions. It makes two writes that a service with both
// conditions refuses: one on the condition that the object does not exist, which can succeed only once, and one
// on the condition of an ETag that no object has.
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
