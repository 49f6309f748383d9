package blobtest_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

// The test sends conditional headers with reads, writes and lease operations, for an existing blob and
// for a missing one. Azurite's own tests have the same cases. Microsoft documents the rules in
// "Specifying conditional headers for Blob service operations".
func TestConditions(t *testing.T) {
	const (
		before = "Mon, 01 Jan 2018 00:00:00 GMT"
		equal  = "Tue, 01 Jan 2019 00:00:00 GMT" // when the blob was changed
		after  = "Wed, 01 Jan 2020 00:00:00 GMT"
		other  = `"0x8D00000"`
		third  = `"0x8D00001"`
		etag   = "the current one"

		match, noneMatch, modified, unmodified = "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"
		many                                   = "MultipleConditionHeadersNotSupported"
	)
	type answers struct {
		status int
		code   string
	}
	ok, notMet, notModified, tooMany := answers{200, ""}, answers{412, "ConditionNotMet"}, answers{304, "ConditionNotMet"}, answers{400, many}
	for _, o := range []struct {
		h           []string
		read, write answers
	}{
		{nil, ok, ok},
		{[]string{match, other}, notMet, notMet},
		{[]string{match, etag}, ok, ok},
		{[]string{match, "*"}, ok, ok},
		{[]string{match, "*," + other}, ok, tooMany},
		{[]string{match, other + "," + etag}, ok, tooMany},
		{[]string{noneMatch, other + "," + etag}, notModified, tooMany},
		{[]string{noneMatch, other + "," + third}, ok, tooMany},
		{[]string{match, `""`}, notMet, notMet}, // a tag that no blob has
		{[]string{noneMatch, `""`}, ok, ok},
		{[]string{noneMatch, other}, ok, ok},
		{[]string{noneMatch, etag}, notModified, notMet},
		{[]string{noneMatch, "*"}, answers{400, "UnsatisfiableCondition"}, ok},
		{[]string{modified, after}, notModified, notMet},
		{[]string{modified, equal}, notModified, notMet},
		{[]string{modified, before}, ok, ok},
		{[]string{unmodified, before}, notMet, notMet},
		{[]string{unmodified, equal}, ok, ok},
		{[]string{unmodified, after}, ok, ok},

		// A read evaluates all headers: match && unmodified && (none match || modified). A write has one
		// condition, or one of two pairs, in which the entity tag decides.
		{[]string{match, etag, noneMatch, other, modified, before, unmodified, after}, ok, tooMany},
		{[]string{match, etag, noneMatch, etag, modified, before, unmodified, before}, notMet, tooMany},
		{[]string{match, etag, noneMatch, etag, modified, before, unmodified, after}, ok, tooMany},
		{[]string{match, other, noneMatch, third, modified, after, unmodified, after}, notMet, tooMany},
		{[]string{match, etag, noneMatch, other, modified, after, unmodified, after}, ok, tooMany},
		{[]string{match, etag, noneMatch, etag}, notModified, tooMany},
		{[]string{match, etag, modified, before}, ok, tooMany},
		{[]string{noneMatch, other, unmodified, after}, ok, tooMany},
		{[]string{modified, before, unmodified, after}, ok, tooMany},
		{[]string{noneMatch, etag, modified, after}, notModified, notMet},
		{[]string{noneMatch, etag, modified, before}, ok, notMet},
		{[]string{noneMatch, other, modified, after}, ok, ok},
		{[]string{match, etag, unmodified, before}, notMet, ok},
		{[]string{match, other, unmodified, after}, notMet, notMet},
	} {
		for _, what := range []struct {
			name, method, target string
			h                    []string
			want                 answers
			status               int // of a request that succeeds
		}{
			{"read", "GET", path, nil, o.read, 200},
			{"read of properties", "HEAD", path, nil, o.read, 200},
			{"metadata", "PUT", path + "?comp=metadata", nil, o.write, 200},
			{"properties", "PUT", path + "?comp=properties", nil, o.write, 200},
			{"snapshot", "PUT", path + "?comp=snapshot", nil, o.write, 201},
			{"delete", "DELETE", path, nil, o.write, 202},
			{"lease", "PUT", path + "?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1"}, o.write, 201},
		} {
			c := newClient(t, blobtest.Options{Clock: leasefault.NewClockAt(time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC), 0)})
			current := c.must(200, "HEAD", path, nil, "").header.Get("ETag")
			h := slices.Clone(what.h)
			for i, v := range o.h {
				if i%2 == 1 {
					v = strings.ReplaceAll(v, etag, current)
				}
				h = append(h, v)
			}
			want := what.want
			if want.code == "" {
				want.status = what.status
			}
			if a := c.do(what.method, what.target, h, ""); a.status != want.status || a.code() != want.code || a.status == 304 && a.body != "" {
				t.Errorf("%s with %q: %d %s, want %d %s", what.name, o.h, a.status, a.code(), want.status, want.code)
			}
		}
	}

	// A blob that does not exist.
	for _, o := range []struct {
		method, target string
		h              []string
		want           answers
	}{
		{"GET", path + "-none", []string{match, other}, notMet},
		{"HEAD", path + "-none", []string{match, "*"}, notMet},
		{"GET", path + "-none", []string{noneMatch, "*"}, answers{400, "UnsatisfiableCondition"}},
		{"GET", path + "-none", []string{noneMatch, other, modified, before}, answers{404, "BlobNotFound"}},
		{"GET", path + "-none", []string{unmodified, before}, answers{404, "BlobNotFound"}},
		{"PUT", path + "-none?comp=metadata", []string{match, other}, notMet},
		{"DELETE", path + "-none", []string{match, "*"}, notMet},
		{"DELETE", path + "-none", []string{noneMatch, "*"}, answers{404, "BlobNotFound"}},
		{"PUT", path + "-none?comp=metadata", []string{modified, before}, answers{404, "BlobNotFound"}},
		{"PUT", path + "-none", []string{"x-ms-blob-type", "BlockBlob", match, other}, notMet},
		{"PUT", path + "-none", []string{"x-ms-blob-type", "BlockBlob", match, other, noneMatch, third, modified, before, unmodified, after}, tooMany},
		{"PUT", path + "-none", []string{"x-ms-blob-type", "BlockBlob", match, other + "," + third}, tooMany},
		{"PUT", path + "-none", []string{"x-ms-blob-type", "BlockBlob", noneMatch, third + ",*"}, tooMany},
		{"PUT", path + "-none", []string{"x-ms-blob-type", "BlockBlob", noneMatch, "*"}, answers{201, ""}},
		{"PUT", path, []string{"x-ms-blob-type", "BlockBlob", noneMatch, "*"}, answers{409, "BlobAlreadyExists"}},
		{"PUT", path + "?comp=blocklist", []string{noneMatch, "*"}, answers{409, "BlobAlreadyExists"}},
		{"PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + path, noneMatch, "*"}, answers{409, "BlobAlreadyExists"}},
		{"PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + path, "x-ms-requires-sync", "true", noneMatch, "*"}, answers{409, "BlobAlreadyExists"}},
	} {
		c := newClient(t, blobtest.Options{})
		body := ""
		if strings.HasSuffix(o.target, "blocklist") {
			body = "<BlockList></BlockList>"
		}
		if a := c.do(o.method, o.target, o.h, body); a.status != o.want.status || a.code() != o.want.code {
			t.Errorf("%s %s with %q: %d %s, want %d %s", o.method, o.target, o.h, a.status, a.code(), o.want.status, o.want.code)
		}
	}
}

// Before 2013-08-15, a read also had one condition, or one of two pairs in which the entity tag decides.
func TestConditionsBefore2013(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.version = "2012-02-12"
	past, future := "Wed, 26 Jan 2011 23:30:18 GMT", "Sat, 26 Jan 2013 23:30:18 GMT"
	c.must(200, "GET", path, []string{"If-Match", "*", "If-Unmodified-Since", future}, "")
	c.must(200, "GET", path, []string{"If-None-Match", "x", "If-Modified-Since", past}, "")
	c.must(200, "GET", path, []string{"If-Match", "*", "If-Unmodified-Since", past}, "")
	c.must(200, "GET", path, []string{"If-None-Match", "x", "If-Modified-Since", future}, "")
	etag := c.must(200, "HEAD", path, nil, "").header.Get("ETag")
	c.must(304, "GET", path, []string{"If-None-Match", etag, "If-Modified-Since", past}, "")
	for _, h := range [][]string{
		{"If-Match", "*,x"},
		{"If-None-Match", "x,y"},
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

// SPEC W7: a use of the blob checks the lease first. A lease operation checks the conditions first.
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
	// If-None-Match: * is a condition for creating a blob, ignored in a request with the ID in force.
	if a := c.put(412, "If-None-Match", "*"); a.code() != "LeaseIdMissing" {
		t.Error(a.code())
	}
	c.put(201, "If-None-Match", "*", "x-ms-lease-id", idA)
	c.lease(200, "release", "x-ms-lease-id", idA)
	if a := c.put(409, "If-None-Match", "*"); a.code() != "BlobAlreadyExists" {
		t.Error(a.code())
	}
	// A condition on a blob that does not exist.
	c.must(202, "DELETE", path, nil, "")
	if a := c.put(412, stale...); a.code() != "ConditionNotMet" {
		t.Error(a.code())
	}
	c.put(201, "If-None-Match", "*")
}

// SPEC M9, W7: "if the operation is successful, the blob has not been changed since the lease ID was last
// valid". A write that fails for a reason other than the lease does not modify the blob.
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
		c.h.Clock().Step(time.Minute)
		c.must(target.status, target.method, target.url, target.h, target.body)
		if a := c.do("PUT", path+"?comp=lease", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA}, ""); a.status != 200 {
			t.Errorf("%s: the expired lease cannot be renewed: %s", target.name, a.code())
		}
	}
}

// A container ignores entity tags, and checks conditions on times only for changes and lease operations.
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

// A condition of a read may have many tags, in one header or in several. They may be weak or without quotes.
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
