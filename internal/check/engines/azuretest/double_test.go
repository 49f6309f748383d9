package azuretest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	azl "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/blobtest"
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

// client makes a client of the SDK for the container at url, which sends its requests through send.
func client(t testing.TB, url string, send policy.Transporter) *container.Client {
	t.Helper()
	cred, err := container.NewSharedKeyCredential(blobtest.DefaultAccount, blobtest.DefaultKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := container.NewClientWithSharedKeyCredential(url, cred, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: send}})
	if err != nil {
		t.Fatal(err)
	}
	return c
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

// newLeases makes a Container at a new double.
func newLeases(t testing.TB) (*azlease.Container, double) {
	t.Helper()
	d := newDouble(t, nil)
	return open(t, client(t, d.url(), d.transport())), d
}

// A counter is a transport that counts its requests.
type counter struct {
	policy.Transporter
	n atomic.Int64

	mu   sync.Mutex
	what []string
}

func (c *counter) Do(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	c.mu.Lock()
	c.what = append(c.what, what(r))
	c.mu.Unlock()
	return c.Transporter.Do(r)
}

// count returns the requests that were sent while f ran.
func (c *counter) count(f func()) []string {
	c.mu.Lock()
	before := len(c.what)
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what[before:]
}

// what returns the name of the operation of a request.
func what(r *http.Request) string {
	switch comp := r.URL.Query().Get("comp"); {
	case comp == "lease":
		return canonical(r).Get("x-ms-lease-action")
	case comp != "":
		return r.Method + " " + comp
	}
	return r.Method
}

// resend returns a copy of a request with its body, so that it can be sent more than once.
func resend(ctx context.Context, r *http.Request, body []byte) *http.Request {
	again := r.Clone(ctx)
	again.Body = io.NopCloser(bytes.NewReader(body))
	return again
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

// canonical returns the headers of a request with canonical names, which the SDK does not use.
func canonical(r *http.Request) http.Header {
	h := http.Header{}
	for name, values := range r.Header {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}
