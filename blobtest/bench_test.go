package blobtest_test

import (
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedlease/lease/blobtest"
)

// BenchmarkStart is the start of a server and its end. The limit is 50 ms.
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

// BenchmarkHandler is a lease operation without the network.
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

// BenchmarkIdleBlob is the memory of an empty blob that nobody uses, in B/blob. The limit
// is 1 KB.
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
