package blobtest_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

// No request causes a panic or a 5xx, and the body of an error is always XML. The headers are lines of
// "name: value".
func FuzzHandler(f *testing.F) {
	f.Add("PUT", path, "comp=lease", "x-ms-lease-action: acquire\nx-ms-lease-duration: 15\nx-ms-proposed-lease-id: "+idA, []byte{})
	f.Add("PUT", path, "comp=lease", "x-ms-lease-action: break\nx-ms-lease-break-period: 61\nx-ms-version: 2011-08-18", []byte{})
	f.Add("PUT", path, "", "x-ms-blob-type: BlockBlob\nx-ms-meta-a: b\nContent-MD5: x", []byte("hello"))
	f.Add("PUT", path, "comp=block&blockid=MDAx", "x-ms-content-crc64: AAAAAAAAAAA=", []byte("block"))
	f.Add("PUT", path, "comp=blocklist", "", []byte("<BlockList><Latest>MDAx</Latest></BlockList>"))
	f.Add("PUT", path, "", "x-ms-copy-source: http://127.0.0.1"+path+"?snapshot=x", []byte{})
	f.Add("GET", path, "snapshot=2012-01-26T23:30:18.2500000Z", "x-ms-range: bytes=1-2\nIf-None-Match: *", []byte{})
	f.Add("GET", account+"/box", "restype=container&comp=list&include=snapshots&marker=YWJj&delimiter=/", "", []byte{})
	f.Add("GET", account, "comp=list&maxresults=1", "Origin: https://a.example", []byte{})
	f.Add("DELETE", account+"/box", "restype=container", "If-Unmodified-Since: Thu, 26 Jan 2012 23:30:18 GMT", []byte{})
	f.Add("GET", path, "sv=2020-12-06&sr=b&sp=r&se=2999-01-01&sip=1.1.1.1-9&sig=x", "", []byte{})
	f.Add("GET", path, "", "Authorization: SharedKey devstoreaccount1:x\nx-ms-date: Thu, 26 Jan 2012 23:30:18 GMT", []byte{})
	f.Add("OPTIONS", path, "", "Origin: x\nAccess-Control-Request-Method: PUT", []byte{})
	f.Fuzz(func(t *testing.T, method, target, query, headers string, body []byte) {
		for _, anyone := range []bool{true, false} {
			h, err := blobtest.NewHandler(nil, &blobtest.Options{AllowAnyone: true, Clock: leasefault.NewClockAt(start, 0), MaxBody: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			c := &client{t, h, today}
			c.must(201, "PUT", account+"/box?restype=container", nil, "")
			c.put(201)
			if !anyone {
				if h, err = blobtest.NewHandler(h.Authority(), &blobtest.Options{Clock: h.Clock()}); err != nil {
					t.Fatal(err)
				}
			}
			r := &http.Request{
				Method: method, URL: &url.URL{Path: target, RawQuery: query}, RequestURI: target + "?" + query, Host: "127.0.0.1",
				Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), RemoteAddr: "127.0.0.1:1",
			}
			for _, line := range strings.Split(headers, "\n") {
				name, value, _ := strings.Cut(line, ":")
				r.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(t.Context()))
			if w.Code < 200 || w.Code >= 500 {
				t.Fatalf("%s %s?%s %q: %d %s", method, target, query, headers, w.Code, w.Body)
			}
			if w.Code >= 400 && method != "HEAD" {
				var m message
				if err := xml.Unmarshal(bytes.TrimPrefix(w.Body.Bytes(), []byte("\ufeff")), &m); err != nil || m.Code == "" || m.Code != w.Header().Get("x-ms-error-code") {
					t.Fatalf("%d %q: %v", w.Code, w.Body, err)
				}
			}
			// The stored data is intact, so it can be listed.
			if anyone {
				if a := c.do("GET", account+"/box?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs,copy", nil, ""); a.status == 200 {
					c.list(account + "/box?restype=container&comp=list&include=snapshots,metadata,uncommittedblobs,copy")
				}
			}
		}
	})
}
