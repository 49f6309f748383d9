package sdktest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease/blobtest"
)

// The SDK for Go reports the errors that are in no cell of the tables.
func TestGoSDKErrors(t *testing.T) {
	srv := startDouble(t, nil)
	client := sdk(t, srv)
	ctx := t.Context()
	_, err := client.CreateContainer(ctx, "box", nil)
	check(t, "create", err, "")
	_, err = client.UploadBuffer(ctx, "box", "blob", []byte("hello"), nil)
	check(t, "upload", err, "")
	b := client.ServiceClient().NewContainerClient("box").NewBlobClient("blob")
	at := func(b *blob.Client, id string) *lease.BlobClient {
		l, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: to.Ptr(id)})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, seconds := range []int32{0, 14, 61, -2} {
		_, err = at(b, idA).AcquireLease(ctx, seconds, nil)
		check(t, "bad duration", err, bloberror.InvalidHeaderValue)
	}
	_, err = at(b, "not a GUID").AcquireLease(ctx, 15, nil)
	check(t, "bad ID", err, bloberror.InvalidHeaderValue)
	_, err = at(client.ServiceClient().NewContainerClient("box").NewBlobClient("none"), idA).AcquireLease(ctx, 15, nil)
	check(t, "no blob", err, bloberror.BlobNotFound)
	_, err = at(client.ServiceClient().NewContainerClient("none").NewBlobClient("none"), idA).AcquireLease(ctx, 15, nil)
	check(t, "no container", err, bloberror.ContainerNotFound)
	snap, err := b.CreateSnapshot(ctx, nil)
	check(t, "snapshot", err, "")
	old, err := b.WithSnapshot(*snap.Snapshot)
	check(t, "with snapshot", err, "")
	_, err = at(old, idA).AcquireLease(ctx, 15, nil)
	check(t, "lease of a snapshot", err, "InvalidOperation")
	_, err = at(b, idA).AcquireLease(ctx, 15, &lease.BlobAcquireOptions{ModifiedAccessConditions: &lease.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(`"0x8D"`))}})
	check(t, "stale", err, bloberror.ConditionNotMet)
	_, err = at(b, idA).AcquireLease(ctx, 15, nil)
	check(t, "acquire", err, "")
	_, err = b.StartCopyFromURL(ctx, b.URL(), &blob.StartCopyFromURLOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: to.Ptr(idA)}}})
	check(t, "copy to a fixed lease", err, bloberror.InfiniteLeaseDurationRequired)
	_, err = at(b, idA).BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: to.Ptr[int32](61)})
	check(t, "bad period", err, bloberror.InvalidHeaderValue)

	stranger, err := azblob.NewSharedKeyCredential(srv.Account, strings.ToLower(srv.Key[:len(srv.Key)-2])+"==")
	check(t, "credential", err, "")
	other, err := azblob.NewClientWithSharedKeyCredential(srv.URL, stranger, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}})
	check(t, "client", err, "")
	_, err = other.CreateContainer(ctx, "another", nil)
	check(t, "wrong key", err, bloberror.AuthenticationFailed)
}

func check(t *testing.T, what string, err error, want bloberror.Code) {
	t.Helper()
	if want == "" && err != nil || want != "" && !bloberror.HasCode(err, want) {
		t.Fatalf("%s: %v, want %q", what, err, want)
	}
}

// An old is a policy with which a client sends an old version.
type old string

func (v old) Do(req *policy.Request) (*http.Response, error) {
	req.Raw().Header["x-ms-version"] = []string{string(v)} // the case that the SDK uses
	return req.Next()
}

// Before version 2012-02-12, a lease always has 60 s, can be renewed and broken after its release, and cannot
// be broken twice.
func TestGoSDKOldVersion(t *testing.T) {
	srv := startDouble(t, &blobtest.Options{AllowAnyone: true}) // the signature is of another version
	cred, err := azblob.NewSharedKeyCredential(srv.Account, srv.Key)
	check(t, "credential", err, "")
	client, err := azblob.NewClientWithSharedKeyCredential(srv.URL, cred, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: -1}, PerCallPolicies: []policy.Policy{old("2011-08-18")},
	}})
	check(t, "client", err, "")
	ctx := t.Context()
	_, err = client.CreateContainer(ctx, "box", nil)
	check(t, "create", err, "")
	b := client.ServiceClient().NewContainerClient("box").NewBlockBlobClient("blob")
	_, err = b.UploadBuffer(ctx, nil, nil)
	check(t, "upload", err, "")
	mine, err := lease.NewBlobClient(b, nil)
	check(t, "lease client", err, "")
	got, err := mine.AcquireLease(ctx, 15, nil)
	check(t, "acquire", err, "")
	l, err := lease.NewBlobClient(b, &lease.BlobClientOptions{LeaseID: got.LeaseID})
	check(t, "lease client", err, "")
	srv.Advance(59 * time.Second)
	_, err = l.RenewLease(ctx, nil)
	check(t, "renew after 59 s", err, "")
	_, err = l.ReleaseLease(ctx, nil)
	check(t, "release", err, "")
	_, err = l.RenewLease(ctx, nil)
	check(t, "renew after release", err, "")
	broken, err := l.BreakLease(ctx, nil)
	check(t, "break", err, "")
	if *broken.LeaseTime != 60 {
		t.Errorf("time left %d, want 60", *broken.LeaseTime)
	}
	_, err = l.BreakLease(ctx, nil)
	check(t, "break again", err, bloberror.LeaseAlreadyBroken)
}
