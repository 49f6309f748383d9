package sdktest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/fencedlease/lease/blobtest"
)

// A leased is a blob or a container in the Azure SDK for Go. Each method makes one call. It returns
// the lease ID and the remaining time from the answer, if the answer has them.
type leased interface {
	acquire(ctx context.Context, id string, seconds int32) (string, error)
	renew(ctx context.Context, id string) (string, error)
	change(ctx context.Context, id, proposed string) (string, error)
	release(ctx context.Context, id string) error
	breaks(ctx context.Context, period *int32) (int32, error)
	read(ctx context.Context, id *string) (state string, etag azcore.ETag, err error)
	write(ctx context.Context, id *string) error
}

type leasedBlob struct {
	t testing.TB
	b *blockblob.Client
}

func (l leasedBlob) client(id string) *lease.BlobClient {
	c, err := lease.NewBlobClient(l.b, &lease.BlobClientOptions{LeaseID: to.Ptr(id)})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l leasedBlob) acquire(ctx context.Context, id string, seconds int32) (string, error) {
	r, err := l.client(id).AcquireLease(ctx, seconds, nil)
	return deref(r.LeaseID), err
}

func (l leasedBlob) renew(ctx context.Context, id string) (string, error) {
	r, err := l.client(id).RenewLease(ctx, nil)
	return deref(r.LeaseID), err
}

func (l leasedBlob) change(ctx context.Context, id, proposed string) (string, error) {
	r, err := l.client(id).ChangeLease(ctx, proposed, nil)
	return deref(r.LeaseID), err
}

func (l leasedBlob) release(ctx context.Context, id string) error {
	_, err := l.client(id).ReleaseLease(ctx, nil)
	return err
}

func (l leasedBlob) breaks(ctx context.Context, period *int32) (int32, error) {
	r, err := l.client(idC).BreakLease(ctx, &lease.BlobBreakOptions{BreakPeriod: period})
	return deref(r.LeaseTime), err
}

func (l leasedBlob) read(ctx context.Context, id *string) (string, azcore.ETag, error) {
	r, err := l.b.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: id}}})
	return string(deref(r.LeaseState)), deref(r.ETag), err
}

func (l leasedBlob) write(ctx context.Context, id *string) error {
	_, err := l.b.UploadBuffer(ctx, []byte("again"), &blockblob.UploadBufferOptions{AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: id}}})
	return err
}

type leasedContainer struct {
	t testing.TB
	c *container.Client
}

func (l leasedContainer) client(id string) *lease.ContainerClient {
	c, err := lease.NewContainerClient(l.c, &lease.ContainerClientOptions{LeaseID: to.Ptr(id)})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l leasedContainer) acquire(ctx context.Context, id string, seconds int32) (string, error) {
	r, err := l.client(id).AcquireLease(ctx, seconds, nil)
	return deref(r.LeaseID), err
}

func (l leasedContainer) renew(ctx context.Context, id string) (string, error) {
	r, err := l.client(id).RenewLease(ctx, nil)
	return deref(r.LeaseID), err
}

func (l leasedContainer) change(ctx context.Context, id, proposed string) (string, error) {
	r, err := l.client(id).ChangeLease(ctx, proposed, nil)
	return deref(r.LeaseID), err
}

func (l leasedContainer) release(ctx context.Context, id string) error {
	_, err := l.client(id).ReleaseLease(ctx, nil)
	return err
}

func (l leasedContainer) breaks(ctx context.Context, period *int32) (int32, error) {
	r, err := l.client(idC).BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: period})
	return deref(r.LeaseTime), err
}

func (l leasedContainer) read(ctx context.Context, id *string) (string, azcore.ETag, error) {
	r, err := l.c.GetProperties(ctx, &container.GetPropertiesOptions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: id}})
	return string(deref(r.LeaseState)), deref(r.ETag), err
}

func (l leasedContainer) write(ctx context.Context, id *string) error {
	_, err := l.c.Delete(ctx, &container.DeleteOptions{AccessConditions: &container.AccessConditions{LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: id}}})
	return err
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Through the Azure SDK for Go, every cell of the tables has the expected outcome, for blobs and
// for containers.
func TestGoSDK(t *testing.T) {
	cells := readCells(t)
	srv := startDouble(t, nil)
	client := sdk(t, srv)
	for i, c := range cells {
		for _, kind := range []string{"blob", "container"} {
			t.Run(strings.Join([]string{kind, c.State, strings.ReplaceAll(c.Action, " ", "-")}, "/"), func(t *testing.T) {
				name := kind + "-" + strconv.Itoa(i)
				if _, err := client.CreateContainer(t.Context(), name, nil); err != nil {
					t.Fatal(err)
				}
				cc := client.ServiceClient().NewContainerClient(name)
				b := cc.NewBlockBlobClient("a blob/with ümläut?")
				if _, err := b.UploadBuffer(t.Context(), []byte("hello"), nil); err != nil {
					t.Fatal(err)
				}
				if kind == "blob" {
					c.run(t, srv, kind, leasedBlob{t, b})
				} else {
					c.run(t, srv, kind, leasedContainer{t, cc})
				}
			})
		}
	}
}

func (c cell) run(t *testing.T, srv *blobtest.Server, kind string, l leased) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if c.State != "Available" {
		_, err := l.acquire(ctx, idA, 15)
		must(err)
	}
	switch c.State {
	case "Breaking(A)":
		left, err := l.breaks(ctx, to.Ptr[int32](10))
		must(err)
		if left != 10 {
			t.Errorf("time left %d, want 10", left)
		}
	case "Broken(A)":
		_, err := l.breaks(ctx, to.Ptr[int32](0))
		must(err)
	case "Expired(A)":
		srv.Advance(15 * time.Second)
	}
	_, before, err := l.read(ctx, nil)
	must(err)

	words := strings.Fields(c.Action)
	var id *string
	if len(words) > 1 && ids[words[1]] != "" {
		id = to.Ptr(ids[words[1]])
	}
	var got, wantID string
	switch words[0] {
	case "read":
		_, _, err = l.read(ctx, id)
	case "write":
		err = l.write(ctx, id)
	case "acquire":
		wantID = deref(id)
		if id == nil { // this SDK always proposes an ID, so propose a new one
			wantID = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
		}
		got, err = l.acquire(ctx, wantID, 60)
	case "renew":
		wantID = *id
		got, err = l.renew(ctx, *id)
	case "change":
		wantID = ids[words[2]]
		got, err = l.change(ctx, *id, wantID)
	case "release":
		err = l.release(ctx, *id)
	case "break":
		var period *int32
		if n, err := strconv.Atoi(words[1]); err == nil {
			period = to.Ptr(int32(n))
		}
		_, err = l.breaks(ctx, period)
	case "expire":
		srv.Advance(time.Minute)
	}
	code := strings.Replace(c.Code, "*", strings.ToUpper(kind[:1])+kind[1:], 1)
	switch {
	case code == "" && err != nil:
		t.Fatalf("%v, want no error", err)
	case code == "" && got != wantID:
		t.Errorf("lease ID %q, want %q", got, wantID)
	case code != "" && !bloberror.HasCode(err, bloberror.Code(code)):
		t.Fatalf("%v, want %s", err, code)
	}
	var re *azcore.ResponseError
	if errors.As(err, &re) && re.StatusCode != c.Status {
		t.Errorf("status %d, want %d", re.StatusCode, c.Status)
	}
	if code == "" && kind == "container" && words[0] == "write" {
		if _, _, err := l.read(ctx, nil); !bloberror.HasCode(err, bloberror.ContainerNotFound) {
			t.Errorf("after its deletion: %v", err)
		}
		return
	}
	state, etag, err := l.read(ctx, nil)
	must(err)
	want, _, _ := strings.Cut(strings.ToLower(c.After), "(")
	if state != want {
		t.Errorf("state %s, want %s", state, want)
	}
	if etag != before && words[0] != "write" {
		t.Errorf("ETag %s, was %s", etag, before)
	}
}

// The SDK shows the status line, the code and the text of the service.
func TestGoSDKErrorText(t *testing.T) {
	srv := startDouble(t, nil)
	client := sdk(t, srv)
	if _, err := client.CreateContainer(t.Context(), "box", nil); err != nil {
		t.Fatal(err)
	}
	_, err := client.ServiceClient().NewContainerClient("box").NewBlobClient("none").GetProperties(t.Context(), nil)
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.StatusCode != http.StatusNotFound || re.ErrorCode != string(bloberror.BlobNotFound) {
		t.Fatal(err)
	}
	if want := "404 The specified blob does not exist."; re.RawResponse.Status != want {
		t.Errorf("status line %q, want %q", re.RawResponse.Status, want)
	}
}
