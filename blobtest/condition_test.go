package blobtest_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// Conditional headers on reads, writes and lease operations: each alone, and the two pairs
// in which the entity tag overrules the time.
func TestConditions(t *testing.T) {
	const (
		modified = "Thu, 26 Jan 2012 23:30:18 GMT"
		earlier  = "Thu, 26 Jan 2012 23:30:17 GMT"
		other    = `"0x8D00000"`
	)
	const etag = "the current one"
	for _, o := range []struct {
		h                  []string
		read, write, lease int
	}{
		{nil, 200, 200, 201},
		{[]string{"If-Match", etag}, 200, 200, 201},
		{[]string{"If-Match", "*"}, 200, 200, 201},
		{[]string{"If-Match", other}, 412, 412, 412},
		{[]string{"If-Match", `""`}, 412, 412, 412}, // a tag that nothing has
		{[]string{"If-None-Match", `""`}, 200, 200, 201},
		{[]string{"If-None-Match", etag}, 304, 412, 412},
		{[]string{"If-None-Match", other}, 200, 200, 201},
		{[]string{"If-None-Match", "*"}, 400, 412, 201},
		{[]string{"If-Modified-Since", earlier}, 200, 200, 201},
		{[]string{"If-Modified-Since", modified}, 304, 412, 412},
		{[]string{"If-Unmodified-Since", modified}, 200, 200, 201},
		{[]string{"If-Unmodified-Since", earlier}, 412, 412, 412},
		{[]string{"If-Match", etag, "If-Unmodified-Since", earlier}, 200, 200, 201},
		{[]string{"If-Match", other, "If-Unmodified-Since", modified}, 412, 412, 412},
		{[]string{"If-None-Match", other, "If-Modified-Since", modified}, 200, 200, 201},
		{[]string{"If-None-Match", etag, "If-Modified-Since", earlier}, 304, 412, 412},
		{[]string{"If-Match", etag, "If-None-Match", etag}, 304, 412, 412},
	} {
		for _, what := range []string{"read", "write", "lease"} {
			c := newClient(t, blobtest.Options{})
			current := c.must(200, "HEAD", path, nil, "").header.Get("ETag")
			c.h.Clock().Advance(time.Hour)
			h := append([]string{}, o.h...)
			for i := range h {
				if h[i] == etag {
					h[i] = current
				}
			}
			var a answer
			var want int
			switch what {
			case "read":
				a, want = c.do("GET", path, h, ""), o.read
			case "write":
				a, want = c.do("PUT", path+"?comp=metadata", h, ""), o.write
			case "lease":
				h = append(h, "x-ms-lease-action", "acquire", "x-ms-lease-duration", "15")
				a, want = c.do("PUT", path+"?comp=lease", h, ""), o.lease
			}
			if a.status != want {
				t.Errorf("%s with %q: %d, want %d", what, o.h, a.status, want)
			}
			code := map[int]string{304: "ConditionNotMet", 412: "ConditionNotMet", 400: "UnsatisfiableCondition"}[want]
			if a.code() != code || a.status == 304 && a.body != "" {
				t.Errorf("%s with %q: code %s, body %q", what, o.h, a.code(), a.body)
			}
		}
	}
}

// Before 2013-08-15 there was one condition, or one of two pairs.
func TestConditionsTogether(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.version = "2012-02-12"
	past, future := "Wed, 26 Jan 2011 23:30:18 GMT", "Sat, 26 Jan 2013 23:30:18 GMT"
	c.must(200, "GET", path, []string{"If-Match", "*", "If-Unmodified-Since", future}, "")
	c.must(200, "GET", path, []string{"If-None-Match", "x", "If-Modified-Since", past}, "")
	for _, h := range [][]string{
		{"If-Match", "*", "If-None-Match", "x"},
		{"If-Match", "*", "If-Modified-Since", past},
		{"If-None-Match", "x", "If-Unmodified-Since", future},
		{"If-Modified-Since", past, "If-Unmodified-Since", future},
	} {
		if a := c.must(400, "GET", path, h, ""); a.code() != "MultipleConditionHeadersNotSupported" {
			t.Errorf("%q: %s", h, a.code())
		}
	}
}

// The order of precedence: a use asks the lease first, a lease operation the conditions.
//
// SPEC W7.
func TestPrecedence(t *testing.T) {
	stale := []string{"If-Match", `"0x8D00000"`}
	c := newClient(t, blobtest.Options{})
	c.acquire(idA, "15")
	for _, o := range []struct {
		id, code string
	}{{"", "LeaseIdMissing"}, {idB, "LeaseIdMismatchWithBlobOperation"}, {idA, "ConditionNotMet"}} {
		h := append([]string{"x-ms-blob-type", "BlockBlob"}, stale...)
		if o.id != "" {
			h = append(h, "x-ms-lease-id", o.id)
		}
		if a := c.must(412, "PUT", path, h, ""); a.code() != o.code {
			t.Errorf("a write with %q: %s, want %s", o.id, a.code(), o.code)
		}
	}
	h := append([]string{"x-ms-lease-id", idB}, stale...)
	if a := c.must(412, "GET", path, h, ""); a.code() != "LeaseIdMismatchWithBlobOperation" {
		t.Errorf("a read: %s", a.code())
	}
	if a := c.lease(412, "renew", h...); a.code() != "ConditionNotMet" {
		t.Errorf("a lease operation: %s", a.code())
	}
	// If-None-Match: * is a condition of creation, and none with the ID in force.
	if a := c.put(412, "If-None-Match", "*"); a.code() != "LeaseIdMissing" {
		t.Error(a.code())
	}
	c.put(201, "If-None-Match", "*", "x-ms-lease-id", idA)
	c.lease(200, "release", "x-ms-lease-id", idA)
	if a := c.put(409, "If-None-Match", "*"); a.code() != "BlobAlreadyExists" {
		t.Error(a.code())
	}
	// A condition on a blob that is not there.
	c.must(202, "DELETE", path, nil, "")
	if a := c.put(412, stale...); a.code() != "ConditionNotMet" {
		t.Error(a.code())
	}
	c.put(201, "If-None-Match", "*")
}

// SPEC M9: "if the operation is successful, the blob has not been changed since the lease ID was
// last valid": a write that fails for another reason is no modification.
//
// SPEC W7.
func TestFailedWritesForgetNothing(t *testing.T) {
	for _, target := range []struct {
		name, method, url string
		h                 []string
		status            int
		body              string
	}{
		{"stale put", "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "If-Match", `"0x8D"`}, 412, ""},
		{"new put", "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "If-None-Match", "*"}, 409, ""},
		{"bad list", "PUT", path + "?comp=blocklist", nil, 400, "<BlockList><Latest>bm9uZQ==</Latest></BlockList>"},
		{"stale metadata", "PUT", path + "?comp=metadata", []string{"If-Match", `"0x8D"`}, 412, ""},
		{"stale delete", "DELETE", path, []string{"If-Match", `"0x8D"`}, 412, ""},
		{"abort", "PUT", path + "?comp=copy&copyid=x", []string{"x-ms-copy-action", "abort"}, 409, ""},
		{"wrong ID", "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-lease-id", idB}, 412, ""},
		{"snapshot", "PUT", path + "?comp=snapshot", nil, 201, ""},
		{"read", "GET", path, nil, 200, ""},
	} {
		c := newClient(t, blobtest.Options{})
		c.acquire(idA, "15")
		c.h.Clock().Advance(time.Minute)
		c.must(target.status, target.method, target.url, target.h, target.body)
		if a := c.do("PUT", path+"?comp=lease", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA}, ""); a.status != 200 {
			t.Errorf("%s: the expired lease cannot be renewed: %s", target.name, a.code())
		}
	}
}

// Of the conditions, containers know the two with times, and only where they are changed or
// leased.
func TestContainerConditions(t *testing.T) {
	const box, earlier = account + "/box?restype=container", "Thu, 26 Jan 2012 23:30:17 GMT"
	c := newClient(t, blobtest.Options{})
	lease := []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}
	for _, o := range []struct {
		method, target string
		h              []string
		status         int
	}{
		{"HEAD", box, []string{"If-Unmodified-Since", earlier}, 200},
		{"GET", box + "&comp=metadata", []string{"If-Unmodified-Since", earlier}, 200},
		{"PUT", box + "&comp=metadata", []string{"If-Unmodified-Since", earlier}, 412},
		{"PUT", box + "&comp=metadata", []string{"If-Match", "x"}, 200},
		{"PUT", box + "&comp=lease", append(lease, "If-Unmodified-Since", earlier), 412},
		{"PUT", box + "&comp=lease", append(lease, "If-Match", "x", "If-None-Match", "*"), 201},
		{"PUT", path + "-not-there?comp=lease", append(lease, "If-Match", "*"), 412},
		{"PUT", path + "-not-there?comp=lease", lease, 404},
	} {
		c.must(o.status, o.method, o.target, o.h, "")
	}
}

// A condition may name many tags, in one header or in several, weak ones and bare ones too.
func TestETagLists(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	etag := c.must(200, "HEAD", path, nil, "").header.Get("ETag")
	for _, values := range [][]string{
		{etag}, {strings.Trim(etag, `"`)}, {"W/" + etag}, {`"x", ` + etag}, {etag + `,"x"`}, {`"x"`, etag}, {"", etag},
	} {
		for name, want := range map[string]int{"If-Match": 200, "If-None-Match": 304} {
			r := httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)
			r.Header["X-Ms-Version"], r.Header[name] = []string{today}, values
			w := httptest.NewRecorder()
			if c.h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("%s: %q: %d, want %d", name, values, w.Code, want)
			}
		}
	}
}
