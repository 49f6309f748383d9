package sdktest

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
)

// A program that was written for the service works with the double. It guards a counter in metadata with
// a lease, and uses blocks, copies, snapshots and lists through the Azure SDK for Go.
func TestConsumer(t *testing.T) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	code := func(err error, want bloberror.Code) {
		t.Helper()
		if !bloberror.HasCode(err, want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	srv := startDouble(t, nil)
	client := sdk(t, srv)
	_, err := client.CreateContainer(ctx, "box", &container.CreateOptions{Metadata: map[string]*string{"kind": to.Ptr("test")}})
	must(err)
	box := client.ServiceClient().NewContainerClient("box")
	b := box.NewBlockBlobClient("a/b c+ü")
	_, err = b.UploadStream(ctx, bytes.NewReader(bytes.Repeat([]byte("0123456789"), 300_000)), &blockblob.UploadStreamOptions{BlockSize: 1 << 20})
	must(err)
	var got bytes.Buffer
	res, err := b.DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 2_999_995, Count: 100}})
	must(err)
	_, err = io.Copy(&got, res.Body)
	must(err)
	if got.String() != "56789" || *res.ContentRange != "bytes 2999995-2999999/3000000" {
		t.Errorf("%q %s", &got, *res.ContentRange)
	}

	l, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(idA)})
	must(err)
	_, err = l.AcquireLease(ctx, 15, nil)
	must(err)
	holding := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: to.Ptr(idA)}}
	p, err := b.GetProperties(ctx, nil)
	must(err)
	if *p.LeaseState != lease.StateTypeLeased || *p.LeaseStatus != lease.StatusTypeLocked || *p.LeaseDuration != lease.DurationTypeFixed {
		t.Errorf("%v %v %v", *p.LeaseState, *p.LeaseStatus, *p.LeaseDuration)
	}
	count := map[string]*string{"count": to.Ptr("1"), "a_b": to.Ptr("x"), "a1": to.Ptr("y")}
	_, err = b.SetMetadata(ctx, count, nil)
	code(err, bloberror.LeaseIDMissing)
	_, err = b.SetMetadata(ctx, count, &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions:    holding.LeaseAccessConditions,
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"0x8D"`))},
	}})
	code(err, bloberror.ConditionNotMet)
	_, err = b.SetMetadata(ctx, count, &blob.SetMetadataOptions{AccessConditions: &blob.AccessConditions{
		LeaseAccessConditions:    holding.LeaseAccessConditions,
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: p.ETag},
	}})
	must(err)
	_, err = b.SetHTTPHeaders(ctx, blob.HTTPHeaders{BlobContentType: to.Ptr("text/plain")}, &blob.SetHTTPHeadersOptions{AccessConditions: holding})
	must(err)
	_, err = b.StageBlock(ctx, "MDAx", streaming.NopCloser(bytes.NewReader([]byte("x"))), &blockblob.StageBlockOptions{LeaseAccessConditions: holding.LeaseAccessConditions})
	must(err)

	snap, err := b.CreateSnapshot(ctx, nil)
	must(err)
	c := box.NewBlobClient("copy")
	started, err := c.StartCopyFromURL(ctx, b.URL(), nil)
	must(err)
	if *started.CopyStatus != blob.CopyStatusTypeSuccess {
		t.Error(*started.CopyStatus)
	}
	_, err = c.CopyFromURL(ctx, b.URL(), nil)
	must(err)
	list, err := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Snapshots: true, Metadata: true}}).NextPage(ctx)
	must(err)
	var names []string
	for _, it := range list.Segment.BlobItems {
		s := *it.Name
		if it.Snapshot != nil && *it.Snapshot != "" {
			s += " snapshot"
		} else {
			s += " " + string(*it.Properties.LeaseState)
		}
		if it.Metadata["count"] == nil || *it.Metadata["count"] != "1" {
			t.Errorf("%s: metadata %v", s, it.Metadata)
		}
		names = append(names, s)
	}
	if len(names) != 3 || names[0] != "a/b c+ü snapshot" || names[1] != "a/b c+ü leased" || names[2] != "copy available" {
		t.Errorf("%q", names)
	}
	_, err = b.Delete(ctx, &blob.DeleteOptions{AccessConditions: holding})
	code(err, bloberror.SnapshotsPresent)

	srv.Advance(15 * time.Second)
	_, err = b.SetMetadata(ctx, count, &blob.SetMetadataOptions{AccessConditions: holding})
	code(err, bloberror.LeaseLost)
	_, err = l.RenewLease(ctx, nil)
	must(err) // no request changed the blob
	_, err = b.Delete(ctx, &blob.DeleteOptions{AccessConditions: holding, DeleteSnapshots: to.Ptr(blob.DeleteSnapshotsOptionTypeInclude)})
	must(err)
	old, err := b.WithSnapshot(*snap.Snapshot)
	must(err)
	_, err = old.GetProperties(ctx, nil)
	code(err, bloberror.BlobNotFound)
	record, err := srv.Lease(ctx, "box", "copy")
	if err != nil || record.Token() != "" {
		t.Errorf("%+v, %v", record, err)
	}
}
