package blobtest_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// SPEC M17, W12: each change that version 2012-02-12 made, in the versions before and after.
func TestDialects(t *testing.T) {
	old := func(t *testing.T, version string) *client {
		c := newClient(t, blobtest.Options{})
		c.version = version
		return c
	}
	t.Run("duration", func(t *testing.T) {
		// "A call to Lease Blob to acquire a lease now must include a lease duration header."
		c := old(t, "2011-08-18")
		id := c.lease(201, "acquire", "x-ms-lease-duration", "nothing of this version", "x-ms-proposed-lease-id", "nor this").header.Get("x-ms-lease-id")
		c.h.Clock().Step(60*time.Second - 1)
		c.put(412)
		c.put(201, "x-ms-lease-id", id)
		c.h.Clock().Step(1)
		c.put(201)
		c.version = "2012-02-12"
		if a := c.lease(400, "acquire"); a.code() != "MissingRequiredHeader" {
			t.Error(a.code())
		}
	})
	t.Run("renew", func(t *testing.T) {
		// "You can no longer renew a lease after releasing it."
		c := old(t, "2011-08-18")
		id := c.lease(201, "acquire").header.Get("x-ms-lease-id")
		c.lease(200, "release", "x-ms-lease-id", id)
		c.version = "2012-02-12"
		if a := c.lease(409, "renew", "x-ms-lease-id", id); a.code() != "LeaseIdMismatchWithLeaseOperation" {
			t.Error(a.code())
		}
		c.version = "2011-08-18"
		c.lease(200, "renew", "x-ms-lease-id", id)
		c.lease(200, "release", "x-ms-lease-id", id)
		c.put(201)
		c.lease(409, "renew", "x-ms-lease-id", id) // modified
	})
	t.Run("break", func(t *testing.T) {
		// "You can no longer break a lease after releasing it."
		c := old(t, "2011-08-18")
		id := c.lease(201, "acquire").header.Get("x-ms-lease-id")
		c.lease(200, "release", "x-ms-lease-id", id)
		c.version = "2012-02-12"
		if a := c.lease(409, "break"); a.code() != "LeaseNotPresentWithLeaseOperation" {
			t.Error(a.code())
		}
		c.version = "2011-08-18"
		if a := c.lease(202, "break"); a.header.Get("x-ms-lease-time") != "0" {
			t.Error(a.header)
		}
	})
	t.Run("again", func(t *testing.T) {
		// "You can now break a breaking or broken lease, making break operations idempotent."
		c := old(t, "2011-08-18")
		c.lease(201, "acquire")
		if a := c.lease(202, "break", "x-ms-lease-break-period", "nothing of this version"); a.header.Get("x-ms-lease-time") != "60" {
			t.Errorf("time %s, want 60", a.header.Get("x-ms-lease-time"))
		}
		if a := c.lease(409, "break"); a.code() != "LeaseAlreadyBroken" {
			t.Error(a.code())
		}
		c.version = "2012-02-12"
		c.lease(202, "break")
	})
	t.Run("change", func(t *testing.T) {
		// "change: Version 2012-02-12 and newer."
		c := old(t, "2011-08-18")
		id := c.lease(201, "acquire").header.Get("x-ms-lease-id")
		a := c.lease(400, "change", "x-ms-lease-id", id, "x-ms-proposed-lease-id", idB)
		if a.code() != "InvalidHeaderValue" {
			t.Error(a.code())
		}
	})
	t.Run("container", func(t *testing.T) {
		c := old(t, "2011-08-18")
		a := c.must(400, "PUT", account+"/box?restype=container&comp=lease", []string{"x-ms-lease-action", "acquire"}, "")
		if m := a.message(t); m.HeaderName != "x-ms-version" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("copy", func(t *testing.T) {
		// "In versions before 2012-02-12, a successful operation returns status code 201 (Created)",
		// a source is named "/accountName/containerName/blobName", a lease ID can be sent for it, and
		// the destination may have any lease.
		c := old(t, "2011-08-18")
		id, target := c.lease(201, "acquire").header.Get("x-ms-lease-id"), account+"/box/copy"
		a := c.must(201, "PUT", target, []string{"x-ms-copy-source", path, "x-ms-source-lease-id", id}, "")
		if a.header.Get("x-ms-copy-id") != "" || a.header.Get("ETag") == "" {
			t.Errorf("%v", a.header)
		}
		if a := c.must(200, "GET", target, nil, ""); a.body != "hello" || a.header.Get("x-ms-copy-status") != "" {
			t.Errorf("%q %v", a.body, a.header)
		}
		if a := c.must(412, "PUT", target, []string{"x-ms-copy-source", path, "x-ms-source-lease-id", idB}, ""); a.code() != "LeaseIdMismatchWithBlobOperation" {
			t.Error(a.code())
		}
		c.must(400, "PUT", target, []string{"x-ms-copy-source", path, "x-ms-source-lease-id", "foo"}, "")
		c.must(412, "PUT", path, []string{"x-ms-copy-source", target}, "")
		c.must(201, "PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + target, "x-ms-lease-id", id}, "")
	})
	t.Run("headers", func(t *testing.T) {
		for _, o := range []struct {
			version string
			lease   string // the form of the entity tag in the answer to a lease operation
			head    string // its form in the answer to a read
			state   bool   // whether an answer has the state of the lease
		}{
			{"2009-09-19", "none", "bare", false},
			{"2011-08-18", "none", "quoted", false},
			{"2012-02-12", "none", "quoted", true},
			{"2013-08-15", "quoted", "quoted", true},
		} {
			c := old(t, o.version)
			a := c.lease(201, "acquire", "x-ms-lease-duration", "15")
			if got := form(a.header.Get("ETag")); got != o.lease {
				t.Errorf("%s: the entity tag of a lease operation is %s", o.version, got)
			}
			a = c.must(200, "HEAD", path, nil, "")
			if got := form(a.header.Get("ETag")); got != o.head {
				t.Errorf("%s: the entity tag of a read is %s", o.version, got)
			}
			if got := a.header.Get("x-ms-lease-state") != ""; got != o.state {
				t.Errorf("%s: the answer has a state: %v", o.version, got)
			}
			l := c.list(account + "/box?restype=container&comp=list")
			if b := l.Blobs[0]; (b.State != "") != o.state || (b.Duration != "") != o.state || b.Status != "locked" {
				t.Errorf("%s: a list has %+v", o.version, b)
			}
			if a.header.Get("x-ms-lease-status") != "locked" || a.header.Get("x-ms-version") != o.version {
				t.Errorf("%s: %v", o.version, a.header)
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		// A request without a version has the default version, which is the oldest.
		c := old(t, "")
		c.lease(201, "acquire")
		if v := c.must(200, "HEAD", path, nil, "").header.Get("x-ms-version"); v != "2009-09-19" {
			t.Error(v)
		}
	})
	t.Run("lease of nothing", func(t *testing.T) {
		// A lease ID for a blob that does not exist was ignored before 2013-08-15.
		c := old(t, "2012-02-12")
		h := []string{"x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idA}
		c.must(201, "PUT", path+"-new", h, "")
		c.version = "2013-08-15"
		if a := c.must(412, "PUT", path+"-newer", h, ""); a.code() != "LeaseNotPresentWithBlobOperation" {
			t.Error(a.code())
		}
	})
}

func form(etag string) string {
	switch {
	case etag == "":
		return "none"
	case etag[0] == '"':
		return "quoted"
	}
	return "bare"
}
