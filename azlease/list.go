package azlease

import (
	"context"
	"errors"
	"iter"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// List implements [lease.Lister]. List yields an entry for every blob that is leased now, or that azlease has
// leased before. Each entry has the data that a read returns. An entry contains no lease ID, because the
// service does not report lease IDs. The field Until of an entry is the latest time at which the last grant
// of azlease can end. However, [Container.Do] describes two cases in which the lease can end later than
// Until. The service sends the list in pages of up to 5,000 blobs, and each page takes one request.
func (c *Container) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		pager := c.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true}})
		for pager.More() {
			var page container.ListBlobsFlatResponse
			err := c.gate.Do(ctx, engine.Request{}, func() (err error) {
				page, err = pager.NextPage(withoutRetries(ctx))
				if err == nil && page.Segment == nil {
					err = errNoBlobs
				}
				if err != nil {
					err = describeError("list", c.client.URL(), err)
				}
				return err
			})
			if err != nil {
				return err
			}
			for _, item := range page.Segment.BlobItems {
				if e, err := entry(item); e.Name != "" && !yield(e, err) {
					return nil
				}
			}
		}
		return nil
	})
}

var errNoBlobs = errors.New("the answer has no list of blobs")

// entry returns the entry for a blob. If the blob has no lease, the entry has an empty name.
func entry(item *container.BlobItem) (lease.Entry, error) {
	if item.Name == nil || item.Properties == nil || *item.Name == FloorBlob {
		return lease.Entry{}, nil
	}
	m, err := readMetadata(*item.Name, item.Metadata)
	if err != nil {
		return lease.Entry{Name: *item.Name}, err
	}
	res := propertiesResult(lease.ID{}, m.grant, item.Properties.LeaseState, item.Properties.LeaseDuration)
	if m.epoch == 0 && !res.Record.State.Locked() {
		return lease.Entry{}, nil
	}
	return lease.Entry{Name: *item.Name, Record: res.Record, Now: res.Now}, nil
}
