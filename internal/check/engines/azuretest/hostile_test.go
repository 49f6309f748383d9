package azuretest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/leasefault"
)

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
func (f trip) Do(r *http.Request) (*http.Response, error)        { return f(r) }

// No error contains the signature of the client, whatever its cause is.
func TestNoErrorHasTheSignature(t *testing.T) {
	d := newDouble(t, nil)
	signed, err := client(t, d.url(), d.transport()).GetSASURL(sas.ContainerPermissions{Read: true, Write: true, List: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	silent := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})}
	c, err := container.NewClientWithNoCredential(signed, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: silent}})
	if err != nil {
		t.Fatal(err)
	}
	leases := open(t, c)
	for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), release(idA), {Action: lease.ActionRead}, {Action: lease.ActionWrite}, {Action: lease.ActionBreak}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := leases.Do(ctx, "job", req)
		cancel()
		if err == nil || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%v: %v", req.Action, err)

		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for _, err := range leases.List(ctx, "") {
		if err == nil || strings.Contains(err.Error(), "sig=") {
			t.Errorf("list: %v", err)
		}
	}
	// The http.Client causes the time-out, like a time-out of a dial.
	silent.Timeout = time.Millisecond
	if _, err := leases.Do(t.Context(), "job", renew(idA)); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "sig=") {
		t.Errorf("a time-out of the client: %v", err)
	}
}

// If a proxy removes ETags, azlease does not panic.
func TestAnswersWithoutETag(t *testing.T) {
	d := newDouble(t, nil)
	good := open(t, client(t, d.url(), d.transport()))
	must(t, good, "known", acquire(idA, time.Minute))
	var strip atomic.Value
	strip.Store("")
	bad := trip(func(r *http.Request) (*http.Response, error) {
		resp, err := d.transport().Do(r)
		if err == nil && (strip.Load() == "*" || strip.Load() == what(r)) {
			resp.Header.Del("ETag")
		}
		return resp, err
	})
	for _, w := range []string{"*", "acquire", "PUT", "HEAD", "PUT metadata"} {
		t.Run(w, func(t *testing.T) {
			strip.Store(w)
			leases := open(t, client(t, d.url(), bad))
			for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), {Action: lease.ActionChange, ID: idA, Proposed: idB}, {Action: lease.ActionRead}, {Action: lease.ActionWrite, ID: idA},
				{Action: lease.ActionBreak, Period: lease.Grace(time.Minute)}, renew(idA), release(idA)} {
				func() {
					defer func() {
						if p := recover(); p != nil {
							t.Errorf("%v panics: %v", req.Action, p)
						}
					}()
					_, _ = leases.Do(t.Context(), "known", req)
				}()
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("first acquire panics: %v", p)
					}
				}()
				_, _ = leases.Do(t.Context(), "new"+strings.ReplaceAll(w, " ", ""), acquire(idA, time.Minute))
			}()
		})
	}
}

// If the answer to a list request is no list, List yields an error.
func TestListWithoutBlobs(t *testing.T) {
	d := newDouble(t, nil)
	bad := trip(func(r *http.Request) (*http.Response, error) {
		resp, err := d.transport().Do(r)
		if err == nil && what(r) == "GET list" {
			resp.Body = readCloser{strings.NewReader(`<?xml version="1.0"?><EnumerationResults><NextMarker/></EnumerationResults>`)}
			resp.ContentLength = -1
		}
		return resp, err
	})
	n := 0
	for _, err := range open(t, client(t, d.url(), bad)).List(t.Context(), "") {
		if err != nil {
			n++
		}
	}
	if n == 0 {
		t.Error("no error")
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// The remaining time of a new holder's lease is never reported to the previous holder.
func TestTimeLeftIsNotThatOfASuccessor(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	var next func()
	between := trip(func(r *http.Request) (*http.Response, error) {
		if what(r) == "break" && next != nil {
			next()
			next = nil
		}
		return d.transport().Do(r)
	})
	leases := open(t, client(t, d.url(), between))
	must(t, leases, "job", acquire(idA, time.Minute))
	must(t, open(t, sdk), "job", lease.Request{Action: lease.ActionBreak, Period: lease.Grace(2 * time.Second)})
	next = func() {
		time.Sleep(2100 * time.Millisecond)
		if _, err := bare(t, sdk, "job", idB).AcquireLease(t.Context(), 60, nil); err != nil {
			t.Fatal(err)
		}
	}
	res, err := leases.Do(t.Context(), "job", renew(idA))
	if lease.CodeOf(err) != lease.ErrBroken || res.MinRemaining > 0 {
		t.Errorf("after another has the lease: %v certain under %v, %v", res.MinRemaining, res.Record.ID, err)
	}
}

// If an acquire under an ID in force fails, the lease of the ID does not end.
func TestFailedAcquireEndsNoLease(t *testing.T) {
	d := newDouble(t, nil)
	var cut atomic.Bool
	bad := trip(func(r *http.Request) (*http.Response, error) {
		if cut.Load() && what(r) == "PUT metadata" {
			return nil, http.ErrHandlerTimeout
		}
		return d.transport().Do(r)
	})
	leases := open(t, client(t, d.url(), bad))
	must(t, leases, "job", acquire(idA, time.Minute))
	cut.Store(true)
	if _, err := leases.Do(t.Context(), "job", acquire(idA, time.Minute)); err == nil {
		t.Fatal("granted")
	}
	if r := d.current("job"); !r.State.Locked() {
		t.Errorf("the lease that was granted before is %v", r)
	}
}

// A process acquires a lease under an ID that another process holds, and then fails to read the blob.
// This does not end the lease of the other process.
func TestFailedReadEndsNoLease(t *testing.T) {
	d := newDouble(t, nil)
	must(t, open(t, client(t, d.url(), d.transport())), "job", acquire(idA, time.Minute))
	way := faulty(t, d.transport(), leasefault.Nth(1, lease.ActionRead, leasefault.FailRequest))
	if _, err := open(t, client(t, d.url(), way)).Do(t.Context(), "job", acquire(idA, time.Minute)); !errors.Is(err, leasefault.ErrInjected) {
		t.Fatalf("%v, want an unknown outcome", err)
	}
	if r := d.current("job"); !r.State.Locked() {
		t.Errorf("the lease that was granted before is %v", r)
	}
}

// A change is repeated after an upload has removed the token of its first grant. The answer has that
// token, the new ID can be renewed, and the next grant has a newer token.
func TestRepeatedChangeAfterUpload(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	leases := open(t, sdk)
	change := lease.Request{Action: lease.ActionChange, ID: idA, Proposed: idB}
	must(t, leases, "job", acquire(idA, time.Minute))
	want := must(t, leases, "job", change).Record
	upload(t, sdk, "job", idB)
	for _, req := range []lease.Request{change, renew(idB), change} {
		got := must(t, leases, "job", req).Record
		if got.ID != idB || got.Epoch != want.Epoch || got.Duration != want.Duration || got.Owner != want.Owner {
			t.Errorf("%v: %+v, want the grant %+v", req.Action, got, want)
		}
	}
	must(t, leases, "job", release(idB))
	if next := must(t, leases, "job", acquire(idA, time.Minute)).Record; next.Epoch <= want.Epoch {
		t.Errorf("token %d after %d", next.Epoch, want.Epoch)
	}
}

// Two processes share an ID, and an upload removes the newest token. The next grant still has a
// newer token than all earlier grants.
func TestTokensOfASharedID(t *testing.T) {
	d := newDouble(t, nil)
	sdk := client(t, d.url(), d.transport())
	one, two := open(t, sdk), open(t, sdk)
	must(t, one, "job", acquire(idA, time.Minute))
	second := must(t, two, "job", acquire(idA, time.Minute))
	upload(t, sdk, "job", idA)
	must(t, one, "job", renew(idA))
	must(t, one, "job", release(idA))
	third := must(t, one, "job", acquire(idB, time.Minute))
	if third.Record.Epoch <= second.Record.Epoch {
		t.Errorf("token %d after %d", third.Record.Epoch, second.Record.Epoch)
	}
}

func upload(t testing.TB, sdk *container.Client, name string, id lease.ID) {
	t.Helper()
	if _, err := sdk.NewBlockBlobClient(name).UploadBuffer(t.Context(), []byte("data"), &blockblob.UploadBufferOptions{AccessConditions: azlease.Fence(id)}); err != nil {
		t.Fatal(err)
	}
}
