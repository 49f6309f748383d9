package azuretest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/leasefault"
)

// No error contains the signature of the client, whatever its cause is.
func TestNoErrorHasTheSignature(t *testing.T) {
	d := newDouble(t, nil)
	signed, err := d.sdk(t).GetSASURL(sas.ContainerPermissions{Read: true, Write: true, List: true}, time.Now().Add(time.Hour), nil)
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
	hides := func(what any, err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "sig=") {
			t.Errorf("%v: %v", what, err)
		}
	}
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), release(idA), reads, {Action: lease.ActionWrite}, {Action: lease.ActionBreak}} {
		_, err := leases.Do(short(), "job", req)
		hides(req.Action, err)
	}
	for _, err := range leases.List(short(), "") {
		hides("list", err)
	}
	// The http.Client causes the time-out, like a time-out of a dial.
	silent.Timeout = time.Millisecond
	_, err = leases.Do(t.Context(), "job", renew(idA))
	if hides("a time-out of the client", err); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a time-out of the client: %v", err)
	}
}

// openAltered makes a Container whose answers are changed by a function.
func (d double) openAltered(t *testing.T, alter func(*http.Request, *http.Response)) *azlease.Container {
	return d.openVia(t, trip(func(r *http.Request) (*http.Response, error) {
		answer, err := d.transport().Do(r)
		if err == nil {
			alter(r, answer)
		}
		return answer, err
	}))
}

// If a proxy removes ETags, azlease does not panic, and each request has an answer or an error.
func TestAnswersWithoutETag(t *testing.T) {
	d := newDouble(t, nil)
	do(t, d.open(t), "known", acquire(idA, time.Minute), 0)
	for _, strip := range []string{"all", "acquire", "PUT", "HEAD", "PUT metadata"} {
		leases := d.openAltered(t, func(r *http.Request, answer *http.Response) {
			if strip == "all" || strip == what(r) {
				answer.Header.Del("ETag")
			}
		})
		for _, req := range []lease.Request{acquire(idA, time.Minute), renew(idA), change(idA, idB), reads, {Action: lease.ActionWrite, ID: idA}, breaks(time.Minute), renew(idA), release(idA)} {
			if r, err := leases.Do(t.Context(), "known", req); err == nil && r.Now.IsZero() {
				t.Errorf("without ETags of %s, %v has neither a time nor an error", strip, req)
			}
		}
		_, _ = leases.Do(t.Context(), "new after "+strip, acquire(idA, time.Minute))
	}
}

// If the answer to a list request is no list, List yields an error.
func TestListWithoutBlobs(t *testing.T) {
	d := newDouble(t, nil)
	leases := d.openAltered(t, func(_ *http.Request, answer *http.Response) {
		answer.Body = io.NopCloser(strings.NewReader(`<?xml version="1.0"?><EnumerationResults><NextMarker/></EnumerationResults>`))
		answer.ContentLength = -1
	})
	for _, err := range leases.List(t.Context(), "") {
		says(t, err, nil, "no list of blobs")
		return
	}
	t.Error("the list is empty")
}

// The remaining time of a new holder's lease is never reported to the previous holder.
func TestTimeLeftIsNotThatOfASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		leases := d.open(t, leasefault.Nth(1, lease.ActionBreak, leasefault.Before(func() {
			time.Sleep(2100 * time.Millisecond)
			if _, err := bare(t, d.sdk(t), "job", idB).AcquireLease(t.Context(), 60, nil); err != nil {
				t.Error(err)
			}
		})))
		do(t, leases, "job", acquire(idA, time.Minute), 0)
		do(t, d.open(t), "job", breaks(2*time.Second), 0)
		if res, err := leases.Do(t.Context(), "job", renew(idA)); lease.CodeOf(err) != lease.ErrBroken || res.MinRemaining > 0 {
			t.Errorf("after another has the lease: %v certain under %v, %v", res.MinRemaining, res.Record.ID, err)
		}
	})
}

// If the service grants an acquire, but a later exchange of it fails, the outcome is unknown. The lease is released,
// unless the ID may have held it before. The release may arrive late, and then ends no lease that was acquired again.
func TestFailedAcquire(t *testing.T) {
	for _, c := range []struct {
		what   string
		before string // who has acquired the lease under the same ID: nobody, "another" or "this" process, perhaps with an "upload"
		faults func(t *testing.T, d double) []leasefault.Line[lease.Action]
		locked bool     // afterwards
		next   lease.ID // which then acquires the lease
	}{
		{"the token cannot be written", "", func(*testing.T, double) []leasefault.Line[lease.Action] {
			return []leasefault.Line[lease.Action]{leasefault.Nth(3, lease.ActionWrite, leasefault.FailRequest)}
		}, false, idB},
		{"the token cannot be written, and the release is late", "", func(t *testing.T, _ double) []leasefault.Line[lease.Action] {
			late := leasefault.Detach(t, leasefault.DelayRequest(10*time.Second))
			return []leasefault.Line[lease.Action]{leasefault.Nth(3, lease.ActionWrite, leasefault.FailRequest), leasefault.Nth(1, lease.ActionRelease, late)}
		}, true, idA},
		{"the token of a lease that is held cannot be written", "this", func(*testing.T, double) []leasefault.Line[lease.Action] {
			return []leasefault.Line[lease.Action]{leasefault.Nth(4, lease.ActionWrite, leasefault.FailRequest)}
		}, true, idA},
		{"the token of a lease that is held cannot be written after an upload", "upload", func(*testing.T, double) []leasefault.Line[lease.Action] {
			return []leasefault.Line[lease.Action]{leasefault.Nth(5, lease.ActionWrite, leasefault.FailRequest)}
		}, true, idA},
		{"the blob of a lease that is held cannot be read", "another", func(*testing.T, double) []leasefault.Line[lease.Action] {
			return []leasefault.Line[lease.Action]{leasefault.Nth(1, lease.ActionRead, leasefault.FailRequest)}
		}, true, idA},
		{"the lease is broken before its token is written", "", func(t *testing.T, d double) []leasefault.Line[lease.Action] {
			return []leasefault.Line[lease.Action]{leasefault.Nth(2, lease.ActionAcquire, leasefault.After(func() { do(t, d.open(t), "job", breaks(0), 0) }))}
		}, false, idB},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDouble(t, nil)
				leases := d.open(t, c.faults(t, d)...)
				if by := map[string]lease.Authority{"this": leases, "upload": leases, "another": d.open(t)}[c.before]; by != nil {
					do(t, by, "job", acquire(idA, time.Minute), 0)
				}
				if c.before == "upload" {
					upload(t, d.sdk(t), "job", idA)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, err := leases.Do(ctx, "job", acquire(idA, time.Minute))
				unknown(t, "acquire", err)
				if r := d.current("job"); r.State.Locked() != c.locked {
					t.Errorf("the lease is %+v", r)
				}
				do(t, leases, "job", acquire(c.next, time.Minute), 0)
				time.Sleep(20 * time.Second)
				if r := d.current("job"); r.State != lease.Leased || r.ID != c.next {
					t.Errorf("20 s after the next grant the lease is %+v", r)
				}
			})
		})
	}
}

// The service refuses a late write of a token if newer tokens were granted under the same ID.
func TestLateTokenIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDouble(t, nil)
		late := d.open(t, leasefault.Nth(3, lease.ActionWrite, leasefault.Detach(t, leasefault.DelayRequest(10*time.Second))))
		leases := d.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := late.Do(ctx, "job", acquire(idA, time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want an unknown outcome", err)
		}
		var newest lease.Token
		for i := range 5 {
			tok := do(t, leases, "job", acquire(idA, time.Minute), 0).Record.Token()
			if tok.Compare(newest) <= 0 {
				t.Fatalf("token %s after %s", tok, newest)
			}
			newest = tok
			if i == 2 {
				time.Sleep(20 * time.Second) // the late write arrives
			}
		}
	})
}

// A change is repeated after an upload has removed the token of its first grant. The answer has that
// token, the new ID can be renewed, and the next grant has a newer token.
func TestRepeatedChangeAfterUpload(t *testing.T) {
	d := newDouble(t, nil)
	leases := d.open(t)
	do(t, leases, "job", acquire(idA, time.Minute), 0)
	want := do(t, leases, "job", change(idA, idB), 0).Record
	upload(t, d.sdk(t), "job", idB)
	for _, req := range []lease.Request{change(idA, idB), renew(idB), change(idA, idB)} {
		got := do(t, leases, "job", req, 0).Record
		if got.ID != idB || got.Epoch != want.Epoch || got.Duration != want.Duration || got.Owner != want.Owner {
			t.Errorf("%v: %+v, want the grant %+v", req.Action, got, want)
		}
	}
	do(t, leases, "job", release(idB), 0)
	if next := do(t, leases, "job", acquire(idA, time.Minute), 0).Record; next.Epoch <= want.Epoch {
		t.Errorf("token %d after %d", next.Epoch, want.Epoch)
	}
}

// Two processes share an ID, and an upload removes the newest token. The next grant still has a
// newer token than all earlier grants.
func TestTokensOfASharedID(t *testing.T) {
	d := newDouble(t, nil)
	one, two := d.open(t), d.open(t)
	do(t, one, "job", acquire(idA, time.Minute), 0)
	second := do(t, two, "job", acquire(idA, time.Minute), 0)
	upload(t, d.sdk(t), "job", idA)
	do(t, one, "job", renew(idA), 0)
	do(t, one, "job", release(idA), 0)
	third := do(t, one, "job", acquire(idB, time.Minute), 0)
	if third.Record.Epoch <= second.Record.Epoch {
		t.Errorf("token %d after %d", third.Record.Epoch, second.Record.Epoch)
	}
}
