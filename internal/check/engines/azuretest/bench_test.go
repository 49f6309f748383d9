package azuretest

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// TestCosts compares azlease with the SDK's own lease client, and with a blob that is replaced if its
// ETag has not changed, as in Akka.Coordination.Azure. All connections are loopback connections. A
// renewal of azlease takes at most 1.25 times as long as one of the SDK.
func TestCosts(t *testing.T) {
	s := server(t)
	sdk, err := container.NewClientFromConnectionString("AccountName="+s.Account+";AccountKey="+s.Key+";BlobEndpoint="+s.URL+";", box, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	leases := open(t, sdk)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do := func(req lease.Request) {
		t.Helper()
		_, err := leases.Do(ctx, "ours", req)
		check(err)
	}
	do(acquire(idA, time.Minute))
	_, err = sdk.NewBlockBlobClient("theirs").UploadBuffer(ctx, nil, nil)
	check(err)
	theirs := bare(t, sdk, "theirs", idA)
	_, err = theirs.AcquireLease(ctx, 60, nil)
	check(err)
	record := newETagLease(t, sdk)
	record.put(ctx)

	compare := func(rounds int, ours, theirs func()) (our, their time.Duration) {
		our, their = shorthand.Compare(shorthand.Rounds(rounds), ours, theirs)
		return our, their
	}
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	best := 100.0
	for range 3 { // on a busy machine, a single run can be slow
		our, their := compare(rounds, func() { do(renew(idA)) }, func() { _, err := theirs.RenewLease(ctx, nil); check(err) })
		ratio := float64(our) / float64(their)
		t.Logf("renewal: ours %v, the SDK's %v: %.2f", our, their, ratio)
		if best = min(best, ratio); best <= 1.25 {
			break
		}
	}
	if best > 1.25 {
		t.Errorf("a renewal takes %.2f times as long as the SDK's, at most 1.25 are allowed", best)
	}
	our, their := compare(rounds, func() { do(renew(idA)) }, func() { record.put(ctx) })
	t.Logf("renewal: ours %v, a record replaced by ETag %v: %.2f", our, their, float64(our)/float64(their))
	do(release(idA))
	_, err = theirs.ReleaseLease(ctx, nil)
	check(err)
	our, their = compare(rounds, func() { do(acquire(idA, time.Minute)); do(release(idA)) }, func() {
		_, err := theirs.AcquireLease(ctx, 60, nil)
		check(err)
		_, err = theirs.ReleaseLease(ctx, nil)
		check(err)
	})
	t.Logf("acquire and release: ours %v, the SDK's, without a token, %v: %.2f", our, their, float64(our)/float64(their))
	our, their = compare(rounds, func() { do(acquire(idA, time.Minute)); do(release(idA)) }, func() {
		record.get(ctx)
		record.put(ctx)
		record.put(ctx)
	})
	t.Logf("acquire and release: ours %v, a record read and replaced by ETag twice %v: %.2f", our, their, float64(our)/float64(their))
}

// An etagLease stores the record of a lease in a blob, and replaces it only if its ETag has not changed.
type etagLease struct {
	t    testing.TB
	blob *blockblob.Client
	etag *azcore.ETag
}

func newETagLease(t testing.TB, c *container.Client) *etagLease {
	return &etagLease{t: t, blob: c.NewBlockBlobClient("record")}
}

func (l *etagLease) get(ctx context.Context) {
	res, err := l.blob.DownloadStream(ctx, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	res.Body.Close()
	l.etag = res.ETag
}

func (l *etagLease) put(ctx context.Context) {
	text := `{"Owner":"worker-1","Time":` + time.Now().UTC().Format(`"2006-01-02T15:04:05.000Z"`) + `}`
	res, err := l.blob.UploadBuffer(ctx, []byte(text), &blockblob.UploadBufferOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: l.etag}}})
	if err != nil {
		l.t.Fatal(err)
	}
	l.etag = res.ETag
}
