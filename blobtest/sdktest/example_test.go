package sdktest

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease/blobtest"
)

// An SDK client acquires a lease, the test moves the clock, and the lease is lost.
func Example() {
	srv, _ := blobtest.NewServer(nil, nil)
	defer srv.Close()
	cred, _ := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
	client, _ := azblob.NewClientWithSharedKeyCredential(srv.URL, cred, nil)
	ctx := context.Background()
	_, _ = client.CreateContainer(ctx, "jobs", nil)
	_, _ = client.UploadBuffer(ctx, "jobs", "nightly", nil, nil)
	mine, _ := lease.NewBlobClient(client.ServiceClient().NewContainerClient("jobs").NewBlobClient("nightly"), nil)
	other, _ := lease.NewBlobClient(client.ServiceClient().NewContainerClient("jobs").NewBlobClient("nightly"), nil)

	_, err := mine.AcquireLease(ctx, 15, nil)
	fmt.Println("acquired:", err == nil)
	srv.Advance(15 * time.Second)
	_, err = other.AcquireLease(ctx, 15, nil)
	fmt.Println("taken over:", err == nil)
	_, err = mine.RenewLease(ctx, nil)
	fmt.Println("lost:", bloberror.HasCode(err, bloberror.LeaseIDMismatchWithLeaseOperation))
	// Output:
	// acquired: true
	// taken over: true
	// lost: true
}
