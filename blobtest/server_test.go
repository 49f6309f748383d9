package blobtest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/linked"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
)

func newServer(t testing.TB, o *blobtest.Options) *blobtest.Server {
	t.Helper()
	s, err := blobtest.NewServer(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// dial opens a connection to a server and sends raw bytes.
func dial(t *testing.T, s *blobtest.Server, raw string) (net.Conn, *bufio.Reader) {
	t.Helper()
	addr, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), "/")
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Write([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

func request(method, target string, h ...string) string {
	s := method + " " + account + target + " HTTP/1.1\r\nHost: localhost\r\nx-ms-version: " + today + "\r\n"
	for i := 0; i < len(h); i += 2 {
		s += h[i] + ": " + h[i+1] + "\r\n"
	}
	return s + "\r\n"
}

// SPEC W6: the reason phrase of an error is its text, also for HEAD. A response without an error keeps
// its own phrase, even on the same connection.
func TestReasonPhrases(t *testing.T) {
	s := newServer(t, &blobtest.Options{AllowAnyone: true})
	_, r := dial(t, s, request("HEAD", "/box?restype=container")+
		request("GET", "/box?restype=container")+
		request("PUT", "/box?restype=container", "Content-Length", "0")+
		request("PUT", "/box?restype=container", "Content-Length", "0")+
		request("PUT", "/box/blob", "Content-Length", "5", "Expect", "100-continue")+"hello"+
		request("HEAD", "/box?restype=container"))
	for i, o := range []struct{ method, want string }{
		{"HEAD", "404 The specified container does not exist."},
		{"GET", "404 The specified container does not exist."},
		{"PUT", "201 Created"},
		{"PUT", "409 The specified container already exists."},
		{"PUT", "400 An HTTP header that's mandatory for this request is not specified."},
	} {
		req, _ := http.NewRequest(o.method, "/", nil)
		res, err := http.ReadResponse(r, req)
		if err != nil {
			t.Fatal(i, err)
		}
		a := answerOf(t, res)
		if res.Status != o.want {
			t.Errorf("%d: %q, want %q", i, res.Status, o.want)
		}
		if res.StatusCode >= 400 && a.code() == "" {
			t.Errorf("%d: no code", i)
		}
		if o.method == "HEAD" && a.body != "" {
			t.Errorf("%d: a HEAD with a body: %q", i, a.body)
		}
	}
}

// Header names have the case that the service uses. Every header is sent once.
func TestHeaderSpelling(t *testing.T) {
	s := newServer(t, &blobtest.Options{AllowAnyone: true, CORS: []blobtest.CORSRule{{Origins: []string{"http://a"}, Methods: []string{"GET"}}}})
	signed := newServer(t, nil)
	namesOf := func(s *blobtest.Server, method, target string, h ...string) (names []string) {
		t.Helper()
		_, r := dial(t, s, request(method, target, append(h, "Connection", "close", "Content-Length", "0")...))
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(b), "\r\n\r\n")
		for _, line := range strings.Split(head, "\r\n")[1:] {
			name, _, _ := strings.Cut(line, ":")
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	names := func(method, target string, h ...string) []string { return namesOf(s, method, target, h...) }
	names("PUT", "/box?restype=container")
	for _, o := range []struct {
		got  []string
		want string
	}{
		{names("PUT", "/box/blob", "x-ms-blob-type", "BlockBlob"),
			"Connection Content-Length Content-MD5 Date ETag Last-Modified Server x-ms-request-id x-ms-request-server-encrypted x-ms-version"},
		{names("PUT", "/box/blob?comp=lease", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "15", "x-ms-client-request-id", "a"),
			"Connection Content-Length Date ETag Last-Modified Server x-ms-client-request-id x-ms-lease-id x-ms-request-id x-ms-version"},
		{names("DELETE", "/box/blob"), "Connection Content-Length Content-Type Date Server x-ms-error-code x-ms-request-id x-ms-version"},
		{names("HEAD", "/box/blob", "x-ms-lease-id", idB), "Connection Date Server x-ms-error-code x-ms-request-id x-ms-version"},
		{names("GET", "/box/none", "Origin", "http://a"),
			"Access-Control-Allow-Credentials Access-Control-Allow-Origin Connection Content-Length Content-Type Date Server Vary x-ms-error-code x-ms-request-id x-ms-version"},
		{namesOf(signed, "HEAD", "/box/blob"), "Connection Date Server WWW-Authenticate x-ms-error-code x-ms-request-id x-ms-version"},
	} {
		if got := strings.Join(o.got, " "); got != o.want {
			t.Errorf("%s, want %s", got, o.want)
		}
	}
}

// "Metadata names preserve the case with which they were created, but are case-insensitive when set or
// read." The server sends the prefix in lower case, because some clients recognize only this form.
func TestMetadataSpelling(t *testing.T) {
	s := newServer(t, &blobtest.Options{AllowAnyone: true})
	const quote = "\nPUT /x HTTP/1.1\r\nx-ms-meta-lockid: 3\r\n\r\n" // a body that looks like a request
	size := strconv.Itoa(len(quote))
	raw := request("PUT", "/box?restype=container", "Content-Length", "0", "x-ms-meta-owner", "a", "X-MS-META-LockID", "b")
	put := request("PUT", "/box/blob", "Content-Length", size, "x-ms-blob-type", "BlockBlob", "x-ms-meta-lockID", "c", "x-ms-meta-Epoch", "7")
	long := request("PUT", "/box/long", "Content-Length", "0", "x-ms-blob-type", "BlockBlob", "x-ms-meta-Filler", strings.Repeat("x", 5000), "x-ms-meta-After", "1")
	for _, o := range []struct {
		send, body string
		want       []string // lines of the answer
	}{
		{raw, "", nil},
		{request("HEAD", "/box?restype=container"), "", []string{"x-ms-meta-owner: a", "x-ms-meta-LockID: b"}},
		{request("GET", "/box?restype=container&comp=metadata"), "", []string{"x-ms-meta-owner: a", "x-ms-meta-LockID: b"}},
		{put, quote, nil},
		{request("GET", "/box/blob"), "", []string{"x-ms-meta-lockID: c", "x-ms-meta-Epoch: 7"}},
		{request("GET", "/box?restype=container&comp=list&include=metadata"), "", []string{"<Metadata><Epoch>7</Epoch><lockID>c</lockID></Metadata>"}},
		{request("PUT", "/box/blob?comp=metadata", "Content-Length", "0", "x-ms-meta-LOCKid", "d"), "", nil},
		{request("PUT", "/box/blob?comp=snapshot", "Content-Length", "0"), "", nil},
		{request("HEAD", "/box/blob"), "", []string{"x-ms-meta-LOCKid: d"}},
		{long, "", nil},
		{request("HEAD", "/box/long"), "", []string{"x-ms-meta-After: 1"}},
	} {
		// Every request has a connection of its own, so that its answer ends with the connection.
		_, r := dial(t, s, strings.Replace(o.send, "\r\n", "\r\nConnection: close\r\n", 1)+o.body)
		b, err := io.ReadAll(r)
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 20") {
			t.Fatalf("%s: %v\n%s", o.send, err, b)
		}
		for _, want := range o.want {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s: no %s in\n%s", o.send, want, b)
			}
		}
	}

	// The names of a pipelined request are in lower case, whatever their case in the previous request.
	_, r := dial(t, s, request("PUT", "/box/one", "Content-Length", "0", "x-ms-blob-type", "BlockBlob", "x-ms-meta-Same", "1")+
		request("PUT", "/box/two", "Content-Length", "0", "x-ms-blob-type", "BlockBlob", "x-ms-meta-SAME", "2")+
		request("GET", "/box?restype=container&comp=list&include=metadata", "Connection", "close"))
	b, err := io.ReadAll(r)
	if got := string(b); err != nil || !strings.Contains(got, "<Same>1</Same>") || !strings.Contains(got, "<same>2</same>") {
		t.Errorf("%s, %v", got, err)
	}

	// On one connection, a body without a line break comes before the next request.
	c, r := dial(t, s, "")
	for _, o := range []struct{ method, send, want string }{
		{"PUT", request("PUT", "/box/blob", "Content-Length", "5", "x-ms-blob-type", "BlockBlob", "x-ms-meta-First", "1") + "hello", ""},
		{"PUT", request("PUT", "/box/blob?comp=metadata", "Content-Length", "0", "x-ms-meta-oneMore", "1"), ""},
		{"GET", request("GET", "/box?restype=container&comp=list&include=metadata&prefix=blob"), "<Metadata><oneMore>1</oneMore></Metadata>"},
		{"PUT", request("PUT", "/box/list?comp=blocklist", "Content-Length", "12", "Expect", "100-continue", "x-ms-meta-twoMore", "2") + "<BlockList/>", ""},
		{"GET", request("GET", "/box?restype=container&comp=list&include=metadata&prefix=list"), "<Metadata><twoMore>2</twoMore></Metadata>"},
	} {
		for _, b := range []byte(o.send) { // the request arrives one byte at a time
			if _, err := c.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		req, _ := http.NewRequest(o.method, "/", nil)
		res, err := http.ReadResponse(r, req)
		if err == nil && res.StatusCode == http.StatusContinue {
			res, err = http.ReadResponse(r, req)
		}
		if err != nil {
			t.Fatal(err)
		}
		if a := answerOf(t, res); a.status >= 300 || !strings.Contains(a.body, o.want) {
			t.Errorf("%s: %d %s", o.send, a.status, a.body)
		}
	}
}

// The test uses the fields and methods of a Server together.
func TestServerFace(t *testing.T) {
	s := newServer(t, nil)
	if s.Account != blobtest.DefaultAccount || s.Key != blobtest.DefaultKey || !strings.HasSuffix(s.URL, "/"+s.Account) {
		t.Errorf("%s %s %s", s.URL, s.Account, s.Key)
	}
	before := s.Clock().Now()
	s.Advance(time.Hour)
	s.Advance(-time.Hour)
	if d := s.Clock().Now().Sub(before); d != time.Hour {
		t.Errorf("the clock moved by %v, want 1h", d)
	}
	if _, err := s.Authority().Do(t.Context(), s.LeaseName("box", "blob"), lease.Request{Action: lease.ActionAcquire, Proposed: vectors.MustParseID(idA), Owner: "worker", Duration: 15 * time.Second}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Lease(t.Context(), "box", "blob")
	if err != nil || r.State != lease.Leased || r.Owner != "worker" || r.Token() != lease.TokenOf(1) {
		t.Errorf("%+v, %v", r, err)
	}
	s.Close()
	s.Close()
	if res, err := http.Get(s.URL); err == nil {
		res.Body.Close()
		t.Error("a closed server answers")
	}
}

// A server has limits for headers and for slow clients.
func TestHTTPServer(t *testing.T) {
	for timeout, header := range map[time.Duration]time.Duration{time.Second: time.Second, time.Minute: 10 * time.Second} {
		h, err := blobtest.NewHandler(nil, &blobtest.Options{Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		s := h.HTTPServer()
		if s.ReadHeaderTimeout != header || s.ReadTimeout != timeout || s.WriteTimeout != 2*timeout || s.IdleTimeout != 2*time.Minute {
			t.Errorf("with %v: %v, %v, %v, %v", timeout, s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout)
		}
	}
	s := newServer(t, &blobtest.Options{AllowAnyone: true})
	_, r := dial(t, s, request("GET", "/box/blob", "x-ms-meta-a", strings.Repeat("x", 70<<10)))
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%v, %v", res, err)
	}
}

type authorityFunc func(context.Context, string, lease.Request) (lease.Result, error)

func (f authorityFunc) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	return f(ctx, name, req)
}

func TestLimits(t *testing.T) {
	c := newClient(t, blobtest.Options{MaxBody: 10, MaxBlob: 10})
	c.must(201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob"}, "0123456789")
	if a := c.must(413, "PUT", path, []string{"x-ms-blob-type", "BlockBlob"}, "0123456789a"); a.code() != "RequestBodyTooLarge" {
		t.Error(a.code())
	}
	big := newClient(t, blobtest.Options{MaxBody: 100, MaxBlob: 150})
	big.must(201, "PUT", path+"?comp=block&blockid=MDAx", nil, strings.Repeat("x", 100))
	big.must(201, "PUT", path+"?comp=blocklist", nil, "<BlockList><Latest>MDAx</Latest></BlockList>")
	if a := big.must(413, "PUT", path+"?comp=blocklist", nil, "<BlockList><Latest>MDAx</Latest><Latest>MDAx</Latest></BlockList>"); a.code() != "RequestBodyTooLarge" {
		t.Error(a.code())
	}
	if a := c.must(400, "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="}, "hellO"); a.code() != "Md5Mismatch" {
		t.Error(a.code())
	}
	c.must(201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob", "Content-MD5", "XUFAKrxLKna5cZ2REBfFkg=="}, "hello")
	for _, target := range []string{"/", "/nobody/box/blob", account + "//blob?comp=list", account + "/box/%00", account + "/box/%ff", path + "?snapshot=%zz", path + "?comp=lease;x"} {
		if a := c.must(400, "GET", target, nil, ""); a.code() != "InvalidUri" {
			t.Errorf("%s: %s", target, a.code())
		}
	}
	long := account + "/box/" + strings.Repeat("%C3%A9", 1024) // 2048 bytes, but 1024 characters
	c.must(201, "PUT", long, []string{"x-ms-blob-type", "BlockBlob"}, "x")
	c.must(201, "PUT", long+"?comp=lease", []string{"x-ms-lease-action", "acquire", "x-ms-lease-duration", "15"}, "")
}

// SPEC W6: a name of the wrong length and a name with invalid characters have different errors, for every
// method. If a name has both faults, the error reports the length.
func TestNames(t *testing.T) {
	const length, characters = "OutOfRangeInput", "InvalidResourceName"
	c := newClient(t, blobtest.Options{})
	for _, o := range []struct{ container, blob, want string }{
		{"c1", "", length},
		{strings.Repeat("x", 64), "", length},
		{"B", "", length},
		{"%C3%A9%C3%A9", "", length}, // two characters, four bytes
		{"BOX", "", characters},
		{"bo--x", "", characters},
		{"-box", "", characters},
		{"box-", "", characters},
		{"b_x", "", characters},
		{"%C3%A9" + strings.Repeat("x", 62), "", characters}, // 63 characters
		{"c1", "blob", length},
		{"BOX", "blob", characters},
		{"box", strings.Repeat("x", 1025), length},
		{"box", strings.Repeat("%C3%A9", 1025), length},
		{"c11", "", ""},
		{strings.Repeat("x", 63), "", ""},
		{"0-0", "", ""},
		{"box", strings.Repeat("%C3%A9", 1024), ""}, // 2048 bytes, but 1024 characters
	} {
		target, h := account+"/"+o.container+"?restype=container", []string(nil)
		if o.blob != "" {
			target, h = account+"/"+o.container+"/"+o.blob, []string{"x-ms-blob-type", "BlockBlob"}
		}
		if o.want == "" {
			c.must(201, "PUT", target, h, "")
			continue
		}
		for _, method := range []string{"PUT", "GET", "DELETE"} {
			a := c.must(400, method, target, h, "")
			text, _, _ := strings.Cut(a.message(t).Message, "\n")
			want := "The specified resource name contains invalid characters."
			if o.want == length {
				want = "The specified resource name length is not within the permissible limits."
			}
			if a.code() != o.want || text != want {
				t.Errorf("%s %.40s: %s, %q, want %s", method, target, a.code(), text, o.want)
			}
		}
	}
}

// The server refuses a request that it does not support, and changes nothing.
func TestNotServed(t *testing.T) {
	c := newClient(t, blobtest.Options{})
	for _, o := range []struct {
		method, target string
		h              []string
		status         int
		code           string
	}{
		{"PUT", path, []string{"x-ms-blob-type", "PageBlob"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-blob-type", "AppendBlob"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-blob-type", "Pebble"}, 400, "InvalidHeaderValue"},
		{"PUT", path, nil, 400, "MissingRequiredHeader"},
		{"PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-tags", "a=b"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-immutability-policy-mode", "locked"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + path, "x-ms-copy-source-tag-option", "COPY"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + path, "x-ms-rehydrate-priority", "High"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + path, "x-ms-seal-blob", "true"}, 400, "UnsupportedHeader"},
		{"PUT", account + "/new?restype=container", []string{"x-ms-default-encryption-scope", "mine"}, 400, "UnsupportedHeader"},
		{"PUT", path, []string{"x-ms-blob-type", "BlockBlob", "x-ms-copy-source", "http://127.0.0.1" + path}, 400, "UnsupportedHeader"},
		{"PUT", path + "?comp=lease", []string{"x-ms-lease-action", "break", "x-ms-if-tags", "a='b'"}, 400, "UnsupportedHeader"},
		{"GET", path, []string{"x-ms-range", "bytes=0-1", "x-ms-range-get-content-crc64", "true"}, 400, "UnsupportedHeader"},
		{"DELETE", path + "?versionid=2020-01-01T00:00:00.0000000Z", nil, 400, "UnsupportedQueryParameter"},
		{"PUT", path, []string{"x-ms-copy-source", "http://127.0.0.1" + path + "?versionid=2020-01-01T00:00:00.0000000Z"}, 400, "UnsupportedQueryParameter"},
		{"DELETE", path + "?deletetype=permanent", nil, 400, "UnsupportedQueryParameter"},
		{"GET", account + "/box?restype=container&comp=list&include=metadata,gossip", nil, 400, "InvalidQueryParameterValue"},
		{"PUT", path + "?comp=tier", nil, 400, "UnsupportedQueryParameter"},
		{"PUT", path + "?comp=page", nil, 400, "UnsupportedQueryParameter"},
		{"GET", path + "?comp=lease", nil, 405, "UnsupportedHttpVerb"},
		{"POST", path, nil, 405, "UnsupportedHttpVerb"},
		{"BREW", path, nil, 405, "UnsupportedHttpVerb"},
		{"PUT", account + "/box?restype=directory", nil, 400, "InvalidQueryParameterValue"},
		{"GET", account + "/box?restype=container&comp=acl", nil, 400, "UnsupportedQueryParameter"},
		{"GET", account + "?comp=properties", nil, 400, "UnsupportedQueryParameter"},
		{"GET", account + "/blob-of-no-container", nil, 404, "ContainerNotFound"},
	} {
		a := c.do(o.method, o.target, o.h, "")
		if a.status != o.status || a.code() != o.code {
			t.Errorf("%s %s %q: %d %s, want %d %s", o.method, o.target, o.h, a.status, a.code(), o.status, o.code)
		}
	}
	if got := c.must(405, "POST", path, nil, "").header.Get("Allow"); got != "PUT, GET, HEAD, DELETE" {
		t.Errorf("Allow: %q", got)
	}
	if a := c.must(200, "GET", path, nil, ""); a.body != "hello" {
		t.Errorf("the blob was changed: %q", a.body)
	}
}

func TestOptions(t *testing.T) {
	fine, one := blobtest.CORSRule{Origins: []string{"*"}, Methods: []string{"GET"}}, []string{"x"}
	for field, o := range map[string]blobtest.Options{
		"Accounts":        {Accounts: map[string]string{"no": "a2V5"}},
		"MaxBody":         {MaxBody: -1},
		"MaxBlob":         {MaxBody: 10, MaxBlob: 9},
		"MaxTotal":        {MaxBlob: 256 << 20, MaxTotal: 256<<20 - 1},
		"Timeout":         {Timeout: -1},
		"CORS[0].Origins": {CORS: []blobtest.CORSRule{{Methods: one}}},
		"CORS[1].Methods": {CORS: []blobtest.CORSRule{fine, {Origins: one}}},
		"CORS[1].MaxAge":  {CORS: []blobtest.CORSRule{fine, {Origins: one, Methods: one, MaxAge: -1}}},
		"Clock":           {Clock: leasefault.NewClockAt(time.Time{}, 0)},
		"DefaultVersion":  {DefaultVersion: 1},
	} {
		_, err := blobtest.NewServer(nil, &o)
		if fe, ok := err.(*lease.FieldError); !ok || fe.Field != "Options."+field || lease.CodeOf(err) != lease.ErrOption {
			t.Errorf("%s: %v", field, err)
		}
	}
	// An error does not mention a size that was not given, and the defaults fit the sizes that are given.
	_, err := blobtest.NewHandler(nil, &blobtest.Options{MaxTotal: -1})
	if want := "Options.MaxTotal = -1: must not be negative"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	const most = 2 << 30
	for _, o := range []blobtest.Options{{MaxBody: 1}, {MaxBlob: 1}, {MaxTotal: 1}, {MaxBody: most}, {MaxBlob: most}, {MaxTotal: most}, {MaxBody: most, MaxTotal: most}} {
		if _, err := blobtest.NewHandler(nil, &o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Serve accepts a TLS listener, and calls the ConnContext of the server.
func TestServeOverTLS(t *testing.T) {
	c, _ := signedClient(t)
	lender := httptest.NewTLSServer(nil) // provides a certificate, and a client that trusts the certificate
	defer lender.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, accepted := c.h.HTTPServer(), make(chan net.Conn, 1)
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		accepted <- conn
		return ctx
	}
	served := make(chan error, 1)
	go func() { served <- c.h.Serve(srv, tls.NewListener(plain, lender.TLS)) }()
	target := path + "?" + accountSignature(t, "ss", "b", "srt", "o", "sp", "r", "sv", today, "spr", "https")
	res, err := lender.Client().Get("https://" + plain.Addr().String() + target)
	if err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, res); a.status != 200 || a.body != "hello" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if conn := <-accepted; fmt.Sprintf("%T", conn) != "*tls.Conn" {
		t.Errorf("ConnContext is called with a %T, want the connection that the listener accepted", conn)
	}
	lender.Client().CloseIdleConnections()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A request outlives its client, but not its server. It ends when the server closes the connection, or at
// the deadline that a wrapping handler has set. Its context has the values of the wrapping handler's
// context.
func TestRequestsEndWithTheServer(t *testing.T) {
	type key struct{}
	for name, closes := range map[string]bool{"closed": true, "deadline": false} {
		synctest.Test(t, func(t *testing.T) {
			begin, ended := time.Now(), make(chan time.Duration, 1)
			auth := authorityFunc(func(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
				if ctx.Value(key{}) != "of a handler" {
					t.Error("a value of the request is lost")
				}
				<-ctx.Done()
				ended <- time.Since(begin)
				return lease.Result{}, ctx.Err()
			})
			h, err := blobtest.NewHandler(auth, &blobtest.Options{AllowAnyone: true})
			if err != nil {
				t.Fatal(err)
			}
			srv := h.HTTPServer()
			srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx := context.WithValue(r.Context(), key{}, "of a handler")
				if !closes {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 7*time.Second)
					defer cancel()
				}
				h.ServeHTTP(w, r.WithContext(ctx))
			})
			l, served := linked.Listen(), make(chan error, 1)
			go func() { served <- h.Serve(srv, l) }()
			ours := l.Dial()
			if _, err := io.WriteString(ours, request("PUT", "/box?restype=container", "Content-Length", "0")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			ours.Close() // the client hangs up
			time.Sleep(5 * time.Second)
			if closes {
				if err := srv.Close(); err != nil {
					t.Error(err)
				}
			}
			if d, want := <-ended, map[bool]time.Duration{true: 5 * time.Second, false: 7 * time.Second}[closes]; d != want {
				t.Errorf("%s: the request ended after %v, want %v", name, d, want)
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// Different resources have different lease names, which are short enough for every authority.
func TestLeaseNames(t *testing.T) {
	long := strings.Repeat("x", 1024)
	seen := map[string]string{}
	for _, blob := range []string{"", "a", "a/b", long, long + "y", long[:900], strings.Repeat("é", 600), strings.Repeat("é", 601)} {
		name := blobtest.LeaseName("account", "box", blob)
		if err := lease.CheckName(name); err != nil {
			t.Error(err)
		}
		seen[name] = blob
		seen[blobtest.LeaseName("account", "box", strings.TrimPrefix(name, "account/box/"))] = name // a blob whose name is the lease name of another resource
	}
	if len(seen) < 11 {
		t.Error("two blobs share a name: ", fmt.Sprint(len(seen)))
	}
}

// The server joins the values of a header that a client sends twice with a comma, as the client signs them.
func TestRepeatedHeaders(t *testing.T) {
	s := newServer(t, &blobtest.Options{AllowAnyone: true})
	c := &client{t, s.Handler, today}
	c.must(201, "PUT", account+"/box?restype=container", nil, "")
	c.put(201)
	for _, o := range []struct {
		h    []string
		name string
	}{
		{[]string{"x-ms-lease-action", "break", "x-ms-lease-action", "acquire"}, "x-ms-lease-action"},
		{[]string{"x-ms-lease-action", "renew", "x-ms-lease-id", idA, "x-ms-lease-id", idB}, "x-ms-lease-id"},
		{[]string{"x-ms-lease-action", "break", "x-ms-version", "2011-08-18"}, "x-ms-version"},
	} {
		_, r := dial(t, s, request("PUT", "/box/blob?comp=lease", append(o.h, "Content-Length", "0")...))
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := answerOf(t, res)
		if m := a.message(t); a.status != 400 || m.HeaderName != o.name || !strings.Contains(m.HeaderValue, ",") {
			t.Errorf("%q: %d %+v", o.h, a.status, m)
		}
	}
}

// The server refuses OPTIONS *.
func TestGeneralOptions(t *testing.T) {
	s := newServer(t, nil)
	_, r := dial(t, s, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, res); a.status != 400 || a.code() != "MissingRequiredHeader" {
		t.Errorf("%d %s", a.status, a.code())
	}
}

// Close ends the context of a request that hangs in the authority, and returns when no request uses the
// authority any more.
func TestCloseEndsRequests(t *testing.T) {
	entered, ended, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	auth := authorityFunc(func(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
		close(entered)
		<-ctx.Done()
		close(ended)
		<-release
		return lease.Result{}, ctx.Err()
	})
	s, err := blobtest.NewServer(auth, &blobtest.Options{AllowAnyone: true})
	if err != nil {
		t.Fatal(err)
	}
	dial(t, s, request("PUT", "/box?restype=container", "Content-Length", "0"))
	<-entered
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	<-ended
	for range 100_000 {
		runtime.Gosched()
		select {
		case <-closed:
			t.Fatal("a request goes on after Close")
		default:
		}
	}
	close(release)
	<-closed
}

func TestCORS(t *testing.T) {
	c := newClient(t, blobtest.Options{CORS: []blobtest.CORSRule{
		{Origins: []string{"https://a.example"}, Methods: []string{"GET", "PUT"}, AllowedHeaders: []string{"x-ms-meta-*", "x-ms-version"}, ExposedHeaders: []string{"x-ms-lease-id"}, MaxAge: time.Minute},
		{Origins: []string{"*"}, Methods: []string{"GET"}},
	}})
	const allow, method, headers = "Access-Control-Allow-Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"
	a, b := []string{"Origin", "https://a.example"}, []string{"Origin", "https://b.example"}
	for _, o := range []struct {
		status         int
		method, target string
		h              []string
		want           map[string]string
	}{
		{200, "GET", path, a, map[string]string{allow: "https://a.example", "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "x-ms-lease-id", "Vary": "Origin"}},
		{200, "GET", path, b, map[string]string{allow: "*", "Access-Control-Allow-Credentials": ""}},
		{201, "PUT", path, append(b, "x-ms-blob-type", "BlockBlob"), map[string]string{allow: ""}},
		{404, "GET", path + "-none", a, map[string]string{allow: "https://a.example"}},
		{200, "OPTIONS", path, append(a, method, "PUT", headers, "X-Ms-Meta-a, x-ms-version"), map[string]string{"Access-Control-Allow-Methods": "PUT", "Access-Control-Max-Age": "60", "Access-Control-Allow-Headers": "X-Ms-Meta-a,x-ms-version"}},
		{403, "OPTIONS", path, append(a, method, "PUT", headers, "x-other"), map[string]string{"x-ms-error-code": "CorsPreflightFailure"}},
		{403, "OPTIONS", path, append(a, method, "DELETE"), nil},
		{403, "OPTIONS", path, append(b, method, "PUT"), nil},
		{400, "OPTIONS", path, a, nil},
		{400, "OPTIONS", path, nil, nil},
	} {
		got := c.must(o.status, o.method, o.target, o.h, "").header
		for name, want := range o.want {
			if got.Get(name) != want {
				t.Errorf("%s %s %q: %s: %q, want %q", o.method, o.target, o.h, name, got.Get(name), want)
			}
		}
	}
	// Get Blob Service Properties returns the rules, and the settings of a new account.
	settings := c.must(200, "GET", account+"/?restype=service&comp=properties", nil, "")
	for _, want := range []string{
		"<AllowedOrigins>https://a.example</AllowedOrigins>", "<AllowedMethods>GET,PUT</AllowedMethods>", "<AllowedHeaders>x-ms-meta-*,x-ms-version</AllowedHeaders>",
		"<ExposedHeaders>x-ms-lease-id</ExposedHeaders>", "<MaxAgeInSeconds>60</MaxAgeInSeconds>", "<DefaultServiceVersion>2009-09-19</DefaultServiceVersion>",
		"<Logging>", "<HourMetrics>", "<DeleteRetentionPolicy><Enabled>false</Enabled>", "<StaticWebsite><Enabled>false</Enabled>",
	} {
		if !strings.Contains(settings.body, want) || settings.header.Get("Content-Type") != "application/xml" {
			t.Errorf("%v, no %s in %s", settings.header, want, settings.body)
		}
	}
	c.must(405, "PUT", account+"/?restype=service&comp=properties", nil, "<StorageServiceProperties/>")
	c.must(400, "GET", account+"/box?restype=service&comp=properties", nil, "")
}

// If a client does not send the whole request, its connection is closed after the timeout. The parameter
// timeout also limits the reading of a body, and the client gets an answer.
func TestSlowClients(t *testing.T) {
	const put = " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nx-ms-blob-type: BlockBlob\r\n\r\nhello"
	for raw, o := range map[string]struct {
		timeout time.Duration
		want    string
	}{
		"GET " + account:                   {50 * time.Millisecond, ""},
		"PUT " + path + put:                {50 * time.Millisecond, ""},
		"PUT " + path + "?timeout=1" + put: {time.Hour, "x-ms-error-code: OperationTimedOut"},
	} {
		s := newServer(t, &blobtest.Options{AllowAnyone: true, Timeout: o.timeout})
		c, r := dial(t, s, raw)
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for found := false; !found || o.want == ""; {
			line, err := r.ReadString('\n')
			if ne, ok := err.(net.Error); ok && ne.Timeout() || err != nil && o.want != "" {
				t.Errorf("%.40q: %v", raw, err)
			}
			if err != nil {
				break
			}
			found = strings.TrimSpace(line) == o.want
		}
	}
}
