package s3lease

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// List reads the keys, and then each object, up to mostRequests objects at the same time.
func (b *backend) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return engine.List(ctx, prefix, func(yield func(engine.NamedEntry, error) bool) error {
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: aws.String(b.prefix + keyPrefix(prefix))})
		for pages.HasMorePages() {
			var page *s3.ListObjectsV2Output
			if err := b.gate.Do(ctx, engine.Request{}, func() (err error) {
				page, err = pages.NextPage(ctx)
				return b.describeError("list objects under", keyPrefix(prefix), err)
			}); err != nil {
				return err
			}
			for some := range slices.Chunk(page.Contents, mostRequests) {
				found, errs := make([]engine.NamedEntry, len(some)), make([]error, len(some))
				var reading sync.WaitGroup
				for i, o := range some {
					reading.Go(func() { found[i], errs[i] = b.list(ctx, strings.TrimPrefix(aws.ToString(o.Key), b.prefix)) })
				}
				reading.Wait()
				for i, e := range found {
					switch {
					case errs[i] != nil && e.Name == "":
						return errs[i]
					case e.Name == "", !strings.HasPrefix(e.Name, prefix):
					case !yield(e, errs[i]):
						return nil
					}
				}
			}
		}
		return nil
	})
}

// The method list reads one object. The result has no name if the key is not that of a lease, or if the object
// was deleted in the meantime.
func (b *backend) list(ctx context.Context, key string) (engine.NamedEntry, error) {
	name, short := nameOf(key)
	if !short && !strings.Contains(key, "=_") {
		return engine.NamedEntry{}, nil
	}
	var o object
	err := b.gate.Do(ctx, engine.Request{}, func() (err error) {
		o, err = b.get(ctx, key)
		return err
	})
	if lease.CodeOf(err) == lease.ErrCorrupt {
		o.Name = name
	}
	return engine.NamedEntry{Name: o.Name, Entry: o.entry()}, err
}
