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
)

const box = "box" // the container of all tests

// A double is a blobtest handler in process, without a network, so that it can live in a synctest
// bubble.
type double struct {
	*blobtest.Handler
}

// newDouble makes a double whose clock runs with package time, unless o has another.
func newDouble(t testing.TB, o *blobtest.Options) double {
	t.Helper()
	if o == nil {
		o = new(blobtest.Options)
	}
	if o.Clock == nil {
		o.Clock = blobtest.NewFastClock(time.Now(), 1)
	}
	o.Containers = []string{box}
	h, err := blobtest.NewHandler(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return double{h}
}

// current returns the record of the lease of a blob, as only the double knows it.
func (d double) current(name string) lease.Record {
	res, err := lease.Inspect(context.Background(), d.Authority(), blobtest.LeaseName(blobtest.DefaultAccount, box, name))
	if err != nil {
		panic(err) // a memory.Store has no errors
	}
	return res.Record
}

// transport is the way of an SDK's requests to the double.
func (d double) transport() policy.Transporter { return &http.Client{Transport: d.Handler} }

// url is the address of the container at the double. The SDK takes the first segment of the path for the
// account only if the host is an IP address.
func (d double) url() string { return "http://127.0.0.1:10000/" + blobtest.DefaultAccount + "/" + box }

// client makes a client of the SDK for the container at url, whose requests go the way of send.
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

// open makes a Container of a client.
func open(t testing.TB, c *container.Client) *azlease.Container {
	t.Helper()
	leases, err := azlease.New(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

// leases makes a Container at a new double.
func newLeases(t testing.TB) (*azlease.Container, double) {
	t.Helper()
	d := newDouble(t, nil)
	return open(t, client(t, d.url(), d.transport())), d
}

// A counter counts the requests that go its way.
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

// count returns what was sent while f ran.
func (c *counter) count(f func()) []string {
	c.mu.Lock()
	before := len(c.what)
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what[before:]
}

// what names the operation of a request.
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

// canonical returns the headers of a request of the SDK, which does not use canonical names.
func canonical(r *http.Request) http.Header {
	h := http.Header{}
	for name, values := range r.Header {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}
