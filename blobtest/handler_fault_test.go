package blobtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// over makes a client of a handler over a wrapped authority. It writes the blob before the first fault.
func over(t *testing.T, wrap func(lease.Authority) lease.Authority) *client {
	t.Helper()
	clock := leasefault.NewClockAt(start, 0)
	auth := wrap(lease.NewAuthority(memory.New(&memory.Options{Clock: clock})))
	h, err := blobtest.NewHandler(auth, &blobtest.Options{AllowAnyone: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, today}
	c.must(201, "PUT", account+"/box?restype=container", nil, "")
	c.put(201)
	return c
}

// SPEC W11: if the authority's answer to an acquire is lost, the server answers with an internal error.
// The client retries with the same proposed ID, and is granted the lease.
func TestLostAnswer(t *testing.T) {
	c := over(t, func(a lease.Authority) lease.Authority {
		return leasefault.Script(a, leasefault.Nth(1, lease.ActionAcquire, leasefault.FailAnswer), leasefault.Nth(1, lease.ActionRenew, leasefault.FailRequest))
	})
	h := []string{"x-ms-proposed-lease-id", idA, "x-ms-lease-duration", "15"}
	if a := c.lease(500, "acquire", h...); a.code() != "InternalError" {
		t.Error(a.code())
	}
	if s := c.must(200, "HEAD", path, nil, "").header.Get("x-ms-lease-state"); s != "leased" {
		t.Errorf("state %s, want leased", s)
	}
	c.lease(201, "acquire", h...)
	c.lease(500, "renew", "x-ms-lease-id", idA)
	c.lease(200, "renew", "x-ms-lease-id", idA)
}

// SPEC W11: if the authority's answer is lost, the server does not carry out the write.
func TestUnknownWrite(t *testing.T) {
	for _, fault := range []leasefault.Fault{leasefault.FailRequest, leasefault.FailAnswer} {
		c := over(t, func(a lease.Authority) lease.Authority {
			return leasefault.Script(a, leasefault.From(3, lease.ActionWrite, fault)) // the first two create the container and the blob
		})
		c.acquire(idA, "15")
		c.must(500, "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA}, "changed")
		c.must(500, "DELETE", path, []string{"x-ms-lease-id", idA}, "")
		if a := c.must(200, "GET", path, nil, ""); a.body != "hello" {
			t.Errorf("%q", a.body)
		}
	}
}

// If the authority does not answer, the request ends after the time in the parameter timeout.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := over(t, func(a lease.Authority) lease.Authority {
			return leasefault.Script(a, leasefault.Always(lease.ActionAcquire, leasefault.LoseRequest))
		})
		for target, want := range map[string]time.Duration{"": 30 * time.Second, "&timeout=7": 7 * time.Second, "&timeout=99": 30 * time.Second} {
			begin := time.Now()
			a := c.must(500, "PUT", path+"?comp=lease"+target, []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, "")
			if a.code() != "OperationTimedOut" || time.Since(begin) != want {
				t.Errorf("%q: %s after %v, want %v", target, a.code(), time.Since(begin), want)
			}
		}
	})
}

// The server also works, without some data, with an authority that returns no records.
func TestHiddenRecords(t *testing.T) {
	c := over(t, func(a lease.Authority) lease.Authority {
		return leasefault.Answer(a, func(_ lease.Request, res *lease.Result, _ *error) { *res = lease.Result{} })
	})
	c.acquire(idA, "15")
	for _, o := range []struct{ got, want string }{
		{c.put(412).code(), "LeaseIdMissing"},
		{c.put(412, "x-ms-lease-id", idB).code(), "LeaseIdMismatchWithBlobOperation"},
		{c.put(201, "x-ms-lease-id", idA).code(), ""},
		{c.lease(409, "renew", "x-ms-lease-id", idB).code(), "LeaseIdMismatchWithLeaseOperation"},
		{c.lease(200, "release", "x-ms-lease-id", idA).code(), ""},
	} {
		if o.got != o.want {
			t.Errorf("%s, want %s", o.got, o.want)
		}
	}
}
