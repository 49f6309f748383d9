package s3lease

import (
	"cmp"
	"context"
	"errors"
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
	return func(yield func(engine.NamedEntry, error) bool) {
		pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: aws.String(b.prefix + keyPrefix(prefix))})
		for pages.HasMorePages() {
			var page *s3.ListObjectsV2Output
			err := b.enter(ctx, func() (err error) {
				page, err = pages.NextPage(ctx)
				return b.describeError("list objects under", keyPrefix(prefix), err)
			})
			if err != nil {
				yield(engine.NamedEntry{}, err)
				return
			}
			for some := range slices.Chunk(page.Contents, mostRequests) {
				found := make([]listed, len(some))
				var reading sync.WaitGroup
				for i, o := range some {
					reading.Go(func() { found[i] = b.list(ctx, strings.TrimPrefix(aws.ToString(o.Key), b.prefix)) })
				}
				reading.Wait()
				for _, l := range found {
					switch {
					case errors.Is(l.err, errAbsent), l.Name != "" && !strings.HasPrefix(l.Name, prefix):
					case !yield(l.NamedEntry, l.err) || l.err != nil && l.Name == "":
						return
					}
				}
			}
		}
	}
}

type listed struct {
	engine.NamedEntry
	err error
}

// list reads one object. The error in the result is errAbsent if the key is not that of a lease, or if the
// object was deleted in the meantime.
func (b *backend) list(ctx context.Context, key string) (l listed) {
	name, short := nameOf(key)
	if !short && !strings.Contains(key, "=_") {
		return listed{err: errAbsent}
	}
	l.err = b.enter(ctx, func() error {
		o, err := b.get(ctx, key)
		if err == nil {
			l.Name, l.Entry = o.Name, o.entry()
		}
		return err
	})
	if lease.CodeOf(l.err) == lease.ErrCorrupt {
		l.NamedEntry = engine.NamedEntry{Name: name}
	}
	return l
}

// enter waits until the gate admits a request of a list or a watch, and then calls f.
func (b *backend) enter(ctx context.Context, f func() error) (err error) {
	unsent := b.gate.Do(ctx, engine.Request{}, func() error {
		if err = f(); errors.Is(err, errAbsent) {
			return nil // the service has answered
		}
		return err
	})
	return cmp.Or(err, unsent)
}
