package s3lease

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// The method poll reads the objects of the names, mostPolls at a time. If an object cannot be read, it counts
// as unchanged.
func (b *backend) poll(ctx context.Context, names []string, seen func(name, version string)) error {
	errs := make([]error, len(names))
	turns := make(chan struct{}, mostPolls)
	var polls sync.WaitGroup
	for i, name := range names {
		turns <- struct{}{}
		polls.Go(func() {
			defer func() { <-turns }()
			var version string
			if version, errs[i] = b.signalled(ctx, name); errs[i] == nil {
				seen(name, version)
			}
		})
	}
	polls.Wait()
	return errors.Join(errs...)
}

// The method signalled reads an object, and returns a text that differs after each change that a watch must
// signal. A renewal normally does not change the text, because the whole duration is left after a renewal.
// The text does change if a delayed renewal leaves less time than the whole duration.
func (b *backend) signalled(ctx context.Context, name string) (version string, err error) {
	err = b.store.Observe(ctx, name, func(ctx context.Context, name string) (engine.Entry, error) {
		o, err := b.readLease(ctx, name)
		if version = o.etag; o.Lease != nil && o.Lease.Record.State == lease.Leased {
			version = fmt.Sprint(*o.Lease)
		}
		return o.entry(), err
	})
	return version, err
}
