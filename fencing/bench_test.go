package fencing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// BenchmarkGuard measures one guarded write. For comparison, it also measures a mutex alone, and a
// mutex with the comparison of two tokens.
func BenchmarkGuard(b *testing.B) {
	mark, older := tok(8), tok(7)
	data := 0
	f := func() error { data++; return nil }
	b.Run("mutex", func(b *testing.B) {
		var mu sync.Mutex
		b.ReportAllocs()
		for b.Loop() {
			mu.Lock()
			f()
			mu.Unlock()
		}
	})
	b.Run("mutex and Compare", func(b *testing.B) {
		var mu sync.Mutex
		seen := mark
		b.ReportAllocs()
		for b.Loop() {
			mu.Lock()
			if mark.Compare(seen) >= 0 {
				seen = mark
				f()
			}
			mu.Unlock()
		}
	})
	var g fencing.Guard
	if err := g.Advance(mark); err != nil {
		b.Fatal(err)
	}
	b.Run("Do", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.Do(mark, f)
		}
	})
	b.Run("Do stale", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.Do(older, f)
		}
	})
	b.Run("DoContext", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		b.ReportAllocs()
		for b.Loop() {
			g.DoContext(ctx, mark, f)
		}
	})
	b.Run("Seen", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g.Seen()
		}
	})
	b.Run("Do, two cores", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				g.Do(mark, f)
			}
		})
	})
}

func BenchmarkAdmit(b *testing.B) {
	mark := markFunc(func(_ context.Context, tok lease.Token) (lease.Token, error) { return tok, nil })
	b.ReportAllocs()
	for b.Loop() {
		fencing.Advance(b.Context(), mark, tok8)
	}
}

var tok8 = tok(8)

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

// BenchmarkGuardsMemory reports the memory of a used guard, with its short name and its entry in the
// map.
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
