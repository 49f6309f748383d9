package azuretest

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/leasefault"
)

const box = "box" // the container of all tests

// A double is a blobtest handler without a network, so that it can run in a synctest bubble.
type double struct {
	*blobtest.Handler
}

// newDouble makes a double. If o has no clock, the clock of the double runs with package time.
func newDouble(t testing.TB, o *blobtest.Options) double {
	t.Helper()
	if o == nil {
		o = new(blobtest.Options)
	}
	if o.Clock == nil {
		o.Clock = leasefault.NewClockAt(time.Now(), 1)
	}
	o.Containers = []string{box}
	h, err := blobtest.NewHandler(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return double{h}
}

// current returns the double's own record of the lease of a blob.
func (d double) current(name string) lease.Record {
	res, err := lease.Inspect(context.Background(), d.Authority(), blobtest.LeaseName(blobtest.DefaultAccount, box, name))
	if err != nil {
		panic(err) // a memory.Store has no errors
	}
	return res.Record
}

// transport returns a transport that sends the requests of an SDK to the double.
func (d double) transport() policy.Transporter { return &http.Client{Transport: d.Handler} }

// url returns the address of the container at the double. Its host is an IP address, because only then
// does the SDK take the first segment of the path as the account.
func (d double) url() string { return "http://127.0.0.1:10000/" + blobtest.DefaultAccount + "/" + box }

// newClient makes a client of the SDK for the container at url, which sends its requests through send.
func newClient(url, key string, send policy.Transporter) (*container.Client, error) {
	cred, err := container.NewSharedKeyCredential(blobtest.DefaultAccount, key)
	if err != nil {
		return nil, err
	}
	return container.NewClientWithSharedKeyCredential(url, cred, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: send}})
}

func client(t testing.TB, url string, send policy.Transporter) *container.Client {
	t.Helper()
	c, err := newClient(url, blobtest.DefaultKey, send)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sdk makes a client of the SDK for the container.
func (d double) sdk(t testing.TB) *container.Client { return client(t, d.url(), d.transport()) }

// open makes a Container at the double. Its requests suffer the faults.
func (d double) open(t testing.TB, faults ...leasefault.Line[lease.Action]) *azlease.Container {
	t.Helper()
	return d.openVia(t, faulty(d.transport(), faults...))
}

// openVia makes a Container at the double that sends its requests through a transport of the test.
func (d double) openVia(t testing.TB, way policy.Transporter) *azlease.Container {
	t.Helper()
	return open(t, client(t, d.url(), way))
}

// open makes a Container that uses the client.
func open(t testing.TB, c *container.Client) *azlease.Container {
	t.Helper()
	leases, err := azlease.New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

var (
	idA, idB                        = shorthand.IDA, shorthand.IDB
	acquire, renew, release, breaks = shorthand.Acquire, shorthand.Renew, shorthand.Release, shorthand.Break
	do, says, permanent             = shorthand.Do, shorthand.Says, shorthand.Permanent
)

var reads = lease.Request{Action: lease.ActionRead}

func change(from, to lease.ID) lease.Request {
	return lease.Request{Action: lease.ActionChange, ID: from, Proposed: to}
}

// unknown requires that the outcome of a request is unknown, and that a retry may help.
func unknown(t testing.TB, what any, err error) {
	t.Helper()
	if err == nil || lease.CodeOf(err) != 0 || permanent(err) {
		t.Errorf("%v: %v, want an unknown outcome", what, err)
	}
}

// upload replaces the content and the metadata of a blob under a lease ID.
func upload(t testing.TB, sdk *container.Client, name string, id lease.ID) {
	t.Helper()
	if _, err := sdk.NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte("data"), &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(id)}); err != nil {
		t.Fatal(err)
	}
}

// edit sets a value in the metadata of a blob, as an operator does. If id is not zero, the edit carries it.
func edit(t testing.TB, sdk *container.Client, name, key, value string, id lease.ID) {
	t.Helper()
	b := sdk.NewBlobClient(name)
	props, err := b.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	meta := map[string]*string{key: &value}
	for k, v := range props.Metadata {
		if !strings.EqualFold(k, key) {
			meta[k] = v
		}
	}
	o := new(blob.SetMetadataOptions)
	if !id.IsZero() {
		o.AccessConditions = azlease.Fence(id)
	}
	if _, err := b.SetMetadata(t.Context(), meta, o); err != nil {
		t.Fatal(err)
	}
}

// A trip is a function that serves as a transport.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
func (f trip) Do(r *http.Request) (*http.Response, error)        { return f(r) }

// A counter is a transport that counts its requests.
type counter struct {
	policy.Transporter

	mu   sync.Mutex
	what []string
}

func (c *counter) Do(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.what = append(c.what, what(r))
	c.mu.Unlock()
	return c.Transporter.Do(r)
}

// sent returns the requests so far.
func (c *counter) sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what
}

// what returns the name of the operation of a request.
func what(r *http.Request) string {
	switch comp := r.URL.Query().Get("comp"); {
	case comp == "lease":
		return strings.Join(r.Header[strings.ToLower("X-Ms-Lease-Action")], "") // the SDK does not use canonical names
	case comp != "":
		return r.Method + " " + comp
	}
	return r.Method
}

// bare returns the SDK's own client for leases.
func bare(t testing.TB, c *container.Client, name string, id lease.ID) *azl.BlobClient {
	t.Helper()
	text := id.String()
	b, err := azl.NewBlobClient(c.NewBlobClient(name), &azl.BlobClientOptions{LeaseID: &text})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
