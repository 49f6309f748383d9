package fencing_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// BenchmarkGuard measures one guarded write and, for comparison, a mutex alone.
func BenchmarkGuard(b *testing.B) {
	var mu sync.Mutex
	var g fencing.Guard
	if err := g.Advance(tok8); err != nil {
		b.Fatal(err)
	}
	data := 0
	f := func() error { data++; return nil }
	for name, write := range map[string]func(){
		"mutex":     func() { mu.Lock(); _ = f(); mu.Unlock() },
		"Do":        func() { _ = g.Do(tok8, f) },
		"Do stale":  func() { _ = g.Do(tok7, f) },
		"DoContext": func() { _ = g.DoContext(b.Context(), tok8, f) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write()
			}
		})
	}
}

var tok7, tok8 = lease.TokenOf(7), lease.TokenOf(8)

// BenchmarkHandler measures a request through the middleware, and a request to the handler alone.
func BenchmarkHandler(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, h := range map[string]http.Handler{"alone": next, "guarded": newHandler(b, next, nil)} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest("PUT", "/", nil)
			r.Header.Set("Fencing-Token", string(tok8))
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkGuardsMemory reports the memory of a used guard, with its short name and its entry in the map.
func BenchmarkGuardsMemory(b *testing.B) {
	const resources = 1 << 16
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var s fencing.Guards
		for i := range resources {
			g, err := s.Guard(strconv.Itoa(i))
			if err != nil {
				b.Fatal(err)
			}
			if err := g.Advance(tok8); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/resources, "bytes/resource")
		runtime.KeepAlive(&s)
	}
}
