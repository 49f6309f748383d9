package blobtest_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedlease/lease/blobtest"
)

// BenchmarkStart starts a server and closes it. The limit is 50 ms.
func BenchmarkStart(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := blobtest.NewServer(nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkHandler carries out a lease operation without the network.
func BenchmarkHandler(b *testing.B) {
	for _, o := range []struct {
		name, id string
		status   int
	}{{"granted", idA, 200}, {"refused", idB, 409}} {
		b.Run(o.name, func(b *testing.B) {
			h := blobs(b, 1)
			send(b, h, 201, path+"0?comp=lease", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "60", "x-ms-proposed-lease-id", idA)
			b.ReportAllocs()
			for b.Loop() {
				send(b, h, o.status, path+"0?comp=lease", "x-ms-lease-action", "renew", "x-ms-lease-id", o.id)
			}
		})
	}
}

// BenchmarkWire sends a renewal through a loopback connection. The client takes very little time.
// The server "bare" is a net/http server that answers with the same headers and does nothing else,
// so the difference is the cost of the double.
func BenchmarkWire(b *testing.B) {
	s := newServer(b, &blobtest.Options{AllowAnyone: true, Containers: []string{"box"}})
	signed := newServer(b, &blobtest.Options{Containers: []string{"box"}})
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Date", "Thu, 26 Jan 2012 23:30:18 GMT")
		h.Set("Server", "Windows-Azure-Blob/1.0 blobtest")
		h["ETag"] = []string{`"0x8DE000000000001"`}
		h["Last-Modified"] = []string{"Thu, 26 Jan 2012 23:30:18 GMT"}
		h["x-ms-lease-id"] = []string{idA}
		h["x-ms-request-id"] = []string{idB}
		h["x-ms-version"] = []string{today}
		h.Set("Content-Length", "0")
	}))
	b.Cleanup(bare.Close)
	query := fields([]string{"sv", today, "ss", "b", "srt", "sco", "sp", "rwdl", "se", "2099-01-01"})
	query.Set("sig", sign(b, strings.Join([]string{"devstoreaccount1", "rwdl", "b", "sco", "", "2099-01-01", "", "", today, ""}, "\n")+"\n"))
	for _, to := range []struct{ name, addr, query string }{
		{"bare", bare.Listener.Addr().String(), ""},
		{"double", hostOf(s), ""},
		{"signed", hostOf(signed), "&" + query.Encode()},
	} {
		request := func(h ...string) string {
			return request("PUT", "/box?restype=container&comp=lease"+to.query, append(h, "Content-Length", "0", "User-Agent", "bench")...)
		}
		b.Run(to.name, func(b *testing.B) {
			c, err := net.Dial("tcp", to.addr)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			r := bufio.NewReader(c)
			exchange(b, c, r, request("x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1", "x-ms-proposed-lease-id", idA))
			renew := request("x-ms-lease-action", "renew", "x-ms-lease-id", idA)
			b.ReportAllocs()
			for b.Loop() {
				exchange(b, c, r, renew)
			}
		})
	}
}

func hostOf(s *blobtest.Server) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), "/")
	return host
}

// exchange sends a request and reads an answer without a body.
func exchange(b *testing.B, c net.Conn, r *bufio.Reader, request string) {
	if _, err := io.WriteString(c, request); err != nil {
		b.Fatal(err)
	}
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil || first && line[9] != '2' {
			b.Fatalf("%s, %v", line, err)
		}
		if len(line) == 2 {
			return
		}
	}
}

// BenchmarkIdleBlob measures the memory of an empty blob that no request uses. The limit is 1 KB.
func BenchmarkIdleBlob(b *testing.B) {
	const n = 20_000
	for b.Loop() {
		before := heap()
		h := blobs(b, n)
		b.ReportMetric(float64(heap()-before)/n, "B/blob")
		runtime.KeepAlive(h)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// blobs makes a handler with n empty blobs.
func blobs(b *testing.B, n int) *blobtest.Handler {
	b.Helper()
	h, err := blobtest.NewHandler(nil, &blobtest.Options{AllowAnyone: true})
	if err != nil {
		b.Fatal(err)
	}
	send(b, h, 201, account+"/box?restype=container")
	for i := range n {
		send(b, h, 201, path+strconv.Itoa(i), "x-ms-blob-type", "BlockBlob")
	}
	return h
}

func send(b *testing.B, h *blobtest.Handler, status int, target string, header ...string) {
	b.Helper()
	r := httptest.NewRequest("PUT", target, strings.NewReader(""))
	r.Header.Set("x-ms-version", today)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != status {
		b.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
}
