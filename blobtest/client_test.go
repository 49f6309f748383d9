package blobtest_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

const (
	idA = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	idB = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	idC = "cccccccc-cccc-4ccc-8ccc-cccccccccccc"

	account = "/devstoreaccount1"
	path    = account + "/box/blob" // the blob that most tests use
	today   = "2025-11-05"
)

var start = time.Date(2012, 1, 26, 23, 30, 18, 250_000_000, time.UTC)

// A client sends unsigned requests to a handler, without a network.
type client struct {
	t       *testing.T
	h       *blobtest.Handler
	version string
}

type answer struct {
	status int
	header http.Header
	body   string
}

// newClient makes a handler with a container and a blob in it.
func newClient(t *testing.T, o blobtest.Options) *client {
	t.Helper()
	o.AllowAnyone = true
	if o.Clock == nil {
		o.Clock = leasefault.NewClockAt(start, 0)
	}
	h, err := blobtest.NewHandler(nil, &o)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t, h, today}
	c.must(201, "PUT", account+"/box?restype=container", nil, "")
	c.put(201)
	return c
}

// do sends a request. The parameter h has names and values of headers in turn; empty values are sent, too.
func (c *client) do(method, target string, h []string, body string) answer {
	c.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
	if c.version != "" {
		r.Header.Set("x-ms-version", c.version)
	}
	for i := 0; i+1 < len(h); i += 2 {
		r.Header.Set(h[i], h[i+1])
	}
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	return answerOf(c.t, w.Result())
}

func answerOf(t *testing.T, res *http.Response) answer {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

// must is like do, but fails the test if the answer has another status.
func (c *client) must(status int, method, target string, h []string, body string) answer {
	c.t.Helper()
	a := c.do(method, target, h, body)
	if a.status != status {
		c.t.Fatalf("%s %s %q: %d %s, want %d", method, target, h, a.status, a.body, status)
	}
	return a
}

func (c *client) put(status int, h ...string) answer {
	c.t.Helper()
	return c.must(status, "PUT", path, append([]string{"x-ms-blob-type", "BlockBlob"}, h...), "hello")
}

// lease sends a lease operation on the blob.
func (c *client) lease(status int, action string, h ...string) answer {
	c.t.Helper()
	return c.must(status, "PUT", path+"?comp=lease", append([]string{"x-ms-lease-action", action}, h...), "")
}

func (c *client) acquire(id string, seconds string) answer {
	c.t.Helper()
	return c.lease(201, "acquire", "x-ms-proposed-lease-id", id, "x-ms-lease-duration", seconds)
}

func (a answer) code() string { return a.header.Get("x-ms-error-code") }

// A message is the body of an answer that reports an error.
type message struct {
	XMLName     xml.Name `xml:"Error"`
	Code        string
	Message     string
	HeaderName  string
	HeaderValue string
	Parameter   string `xml:"QueryParameterName"`
	Detail      string `xml:"AuthenticationErrorDetail"`
}

func (a answer) message(t *testing.T) (m message) {
	t.Helper()
	if !strings.HasPrefix(a.body, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?><Error>`) {
		t.Fatalf("the body begins otherwise than the service's: %q", a.body)
	}
	if err := xml.NewDecoder(bytes.NewReader([]byte(a.body)[3:])).Decode(&m); err != nil {
		t.Fatalf("%q: %v", a.body, err)
	}
	return m
}
