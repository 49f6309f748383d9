package blobtest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
)

// SPEC W3: in a new version, the answer to each lease operation has exactly the headers in this test.
func TestLeaseHeaders(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	before := c.must(200, "HEAD", path, nil, "")
	c.h.Clock().Step(3 * time.Second)
	common := map[string]string{
		"ETag":                   before.header.Get("ETag"),
		"Last-Modified":          "Thu, 26 Jan 2012 23:30:18 GMT",
		"Date":                   "Thu, 26 Jan 2012 23:30:21 GMT",
		"X-Ms-Version":           today,
		"X-Ms-Client-Request-Id": "my request",
		"X-Ms-Request-Id":        "*",
		"Server":                 "*",
		"Content-Length":         "0",
	}
	for _, o := range []struct {
		status int
		action string
		h      []string
		own    map[string]string
	}{
		{201, "acquire", []string{"x-ms-lease-duration", "60", "x-ms-proposed-lease-id", idA}, map[string]string{"X-Ms-Lease-Id": idA}},
		{200, "renew", []string{"x-ms-lease-id", idA}, map[string]string{"X-Ms-Lease-Id": idA}},
		{200, "change", []string{"x-ms-lease-id", idA, "x-ms-proposed-lease-id", idB}, map[string]string{"X-Ms-Lease-Id": idB}},
		{202, "break", []string{"x-ms-lease-break-period", "20"}, map[string]string{"X-Ms-Lease-Time": "20"}},
		{200, "release", []string{"x-ms-lease-id", idB}, nil},
	} {
		a := c.lease(o.status, o.action, append(o.h, "x-ms-client-request-id", "my request")...)
		want := map[string]string{}
		for _, m := range []map[string]string{common, o.own} {
			for k, v := range m {
				want[http.CanonicalHeaderKey(k)] = v
			}
		}
		for name, v := range want {
			if got := a.header.Get(name); got != v && (v != "*" || got == "") {
				t.Errorf("%s: %s: %q, want %q", o.action, name, got, v)
			}
		}
		for name := range a.header {
			if _, ok := want[name]; !ok {
				t.Errorf("%s: unexpected header %s", o.action, name)
			}
		}
		if a.body != "" {
			t.Errorf("%s: body %q", o.action, a.body)
		}
	}
}

// SPEC W4: "The value of x-ms-lease-id can be specified in any valid GUID string format". An ID is the
// same in all formats, and the answer contains it in format D.
func TestGUIDFormats(t *testing.T) {
	n := strings.ReplaceAll(idA, "-", "")
	x := "{0xaaaaaaaa,0xaaaa,0x4aaa,{0x8a,0xaa,0xaa,0xaa,0xaa,0xaa,0xaa,0xaa}}"
	formats := []string{n, idA, "{" + idA + "}", "(" + idA + ")", x, strings.ToUpper(idA)}
	for _, proposed := range formats {
		c := newClient(t, blobtest.Options{})
		if got := c.acquire(proposed, "15").header.Get("x-ms-lease-id"); got != idA {
			t.Errorf("proposed %s: %s", proposed, got)
		}
		for _, f := range formats {
			if got := c.lease(200, "renew", "x-ms-lease-id", f).header.Get("x-ms-lease-id"); got != idA {
				t.Errorf("renewed %s: %s", f, got)
			}
			c.put(201, "x-ms-lease-id", f)
		}
	}
}

// SPEC M18, W6: if a header is missing or invalid, the answer has status 400 and its name, in every state.
func TestBadHeaders(t *testing.T) {
	const missing, invalid = "MissingRequiredHeader", "InvalidHeaderValue"
	for _, o := range []struct {
		action     string
		h          []string
		code, name string
	}{
		{"", nil, missing, "x-ms-lease-action"},
		{"seize", nil, invalid, "x-ms-lease-action"},
		{"read", nil, invalid, "x-ms-lease-action"},
		{"write", nil, invalid, "x-ms-lease-action"},
		{"acquire", nil, missing, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "14"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "61"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "0"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "-2"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "abc"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "15.5"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "99999999999999999999"}, invalid, "x-ms-lease-duration"},
		{"acquire", []string{"x-ms-lease-duration", "15", "x-ms-proposed-lease-id", "foo"}, invalid, "x-ms-proposed-lease-id"},
		{"acquire", []string{"x-ms-lease-duration", "15", "x-ms-proposed-lease-id", lease.ID{}.String()}, invalid, "x-ms-proposed-lease-id"},
		{"renew", nil, missing, "x-ms-lease-id"},
		{"renew", []string{"x-ms-lease-id", "foo"}, invalid, "x-ms-lease-id"},
		{"renew", []string{"x-ms-lease-id", lease.ID{}.String()}, invalid, "x-ms-lease-id"},
		{"release", nil, missing, "x-ms-lease-id"},
		{"change", []string{"x-ms-proposed-lease-id", idB}, missing, "x-ms-lease-id"},
		{"change", []string{"x-ms-lease-id", idA}, missing, "x-ms-proposed-lease-id"},
		{"change", []string{"x-ms-lease-id", idA, "x-ms-proposed-lease-id", "foo"}, invalid, "x-ms-proposed-lease-id"},
		{"break", []string{"x-ms-lease-break-period", "61"}, invalid, "x-ms-lease-break-period"},
		{"break", []string{"x-ms-lease-break-period", "-1"}, invalid, "x-ms-lease-break-period"},
		{"break", []string{"x-ms-lease-break-period", "abc"}, invalid, "x-ms-lease-break-period"},
		{"break", []string{"x-ms-version", "2008-10-27"}, invalid, "x-ms-version"},
		{"break", []string{"x-ms-version", "2012-02-31"}, invalid, "x-ms-version"},
		{"break", []string{"If-Modified-Since", "yesterday"}, invalid, "If-Modified-Since"},
	} {
		for _, state := range []string{"available", "infinite"} {
			c := newClient(t, blobtest.Options{})
			if state == "infinite" {
				c.acquire(idA, "-1")
			}
			h := append([]string{"x-ms-lease-action", o.action}, o.h...)
			a := c.must(400, "PUT", path+"?comp=lease", h, "")
			m := a.message(t)
			if a.code() != o.code || m.Code != o.code || m.HeaderName != o.name {
				t.Errorf("%s %q: %s about %s, want %s about %s", o.action, o.h, a.code(), m.HeaderName, o.code, o.name)
			}
			if i := slices.Index(o.h, o.name); o.code == invalid && i >= 0 && m.HeaderValue != o.h[i+1] {
				t.Errorf("%s %q: value %q", o.action, o.h, m.HeaderValue)
			}
		}
	}
}

// Headers of another action are ignored. The case of an action does not matter.
func TestIgnoredHeaders(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.lease(201, "ACQUIRE", "x-ms-lease-duration", "15", "x-ms-proposed-lease-id", idA, "x-ms-lease-break-period", "99")
	c.lease(200, "Renew", "x-ms-lease-id", idA, "x-ms-lease-duration", "99")
	c.lease(409, "acquire", "x-ms-lease-duration", "15", "x-ms-lease-id", idA) // x-ms-lease-id does not propose an ID
	c.lease(202, "break", "x-ms-lease-id", idB, "x-ms-lease-duration", "1")
}

// SPEC W5: "Approximate time remaining in the lease period, in seconds", is truncated.
func TestLeaseTime(t *testing.T) {
	for _, o := range []struct {
		duration string
		after    time.Duration
		period   string
		want     string
	}{
		{"15", 0, "", "15"},
		{"15", time.Millisecond, "", "14"},
		{"15", 14*time.Second + time.Millisecond, "", "0"},
		{"60", 10 * time.Second, "30", "30"},
		{"60", 40 * time.Second, "30", "20"},
		{"60", 0, "0", "0"},
		{"-1", 0, "", "0"},
		{"-1", time.Hour, "60", "60"},
		{"15", time.Minute, "30", "0"},
	} {
		c := newClient(t, blobtest.Options{})
		c.acquire(idA, o.duration)
		c.h.Clock().Step(o.after)
		h := []string{}
		if o.period != "" {
			h = []string{"x-ms-lease-break-period", o.period}
		}
		if got := c.lease(202, "break", h...).header.Get("x-ms-lease-time"); got != o.want {
			t.Errorf("%+v: %s", o, got)
		}
	}
	c := newClient(t, blobtest.Options{})
	c.acquire(idA, "60")
	for _, o := range [][2]string{{"30", "30"}, {"60", "30"}, {"10", "10"}, {"", "10"}, {"0", "0"}, {"30", "0"}} {
		h := []string{"x-ms-lease-break-period", o[0]}
		if got := c.lease(202, "break", h...).header.Get("x-ms-lease-time"); got != o[1] {
			t.Errorf("break %s: %s, want %s", o[0], got, o[1])
		}
	}
}

// SPEC W9: "Requesting a lease against a snapshot results in status code 400 (Bad Request)."
func TestSnapshotsHaveNoLease(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	c.acquire(idA, "-1")
	s := c.must(201, "PUT", path+"?comp=snapshot", nil, "").header.Get("x-ms-snapshot")
	snapshot, notPresent := path+"?snapshot="+s, "LeaseNotPresentWithBlobOperation"
	for _, o := range []struct {
		status         int
		method, target string
		h              []string
		code           string
	}{
		{400, "PUT", snapshot + "&comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, "InvalidOperation"},
		{400, "PUT", snapshot + "&comp=lease", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA}, "InvalidOperation"},
		{400, "PUT", snapshot + "&comp=lease", []string{"x-ms-lease-action", "break"}, "InvalidOperation"},
		{200, "PUT", path + "?comp=lease", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA}, ""},
		{200, "GET", snapshot, nil, ""},
		{412, "GET", snapshot, []string{"x-ms-lease-id", idA}, notPresent},
		{412, "DELETE", snapshot, []string{"x-ms-lease-id", idA}, notPresent},
		{412, "DELETE", snapshot, []string{"If-Match", `"0x8D"`}, "ConditionNotMet"},
		{202, "DELETE", snapshot, nil, ""}, // no lease protects a snapshot
		{404, "GET", snapshot, nil, "BlobNotFound"},
	} {
		if a := c.must(o.status, o.method, o.target, o.h, ""); a.code() != o.code {
			t.Errorf("%s %s %q: %s, want %s", o.method, o.target, o.h, a.code(), o.code)
		}
	}
}

// The answer repeats a client's request ID if it has at most 1,024 visible ASCII characters.
func TestClientRequestID(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for id, want := range map[string]bool{
		"x": true, strings.Repeat("x", 1024): true, strings.Repeat("x", 1025): false, "é": false, "": false,
	} {
		for _, target := range []string{path, path + "-not-there"} {
			a := c.do("HEAD", target, []string{"x-ms-client-request-id", id}, "")
			if got := a.header.Get("x-ms-client-request-id"); (got == id) != want && id != "" || !want && got != "" {
				t.Errorf("%.10q of %d: %.10q", id, len(id), got)
			}
		}
	}
}

// The case of parameter names does not matter. Of several parameters with the same name, the first
// counts. The parameter timeout is accepted.
func TestParameters(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for _, s := range []string{"0", "1", "30", "3600"} {
		c.must(200, "HEAD", path+"?timeout="+s, nil, "")
	}
	if m := c.must(400, "GET", path+"?timeout=soon", nil, "").message(t); m.Code != "InvalidQueryParameterValue" || m.Parameter != "timeout" {
		t.Errorf("%+v", m)
	}
	for range 20 { // the order of a map is random
		if a := c.must(200, "GET", account+"/box?RESTYPE=Container&Comp=List&comp=metadata&cOMP=x", nil, ""); a.body == "" {
			t.Fatal("the first is not the one that counts")
		}
	}
	if a := c.must(400, "GET", path+"?timeout=%zz&comp=metadata", nil, ""); a.code() != "InvalidUri" {
		t.Error(a.code())
	}
}
