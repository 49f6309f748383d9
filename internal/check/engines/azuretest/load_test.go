package azuretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/session"
)

// A throttled service carries out a number of requests a second, one after the other. If more than a second's worth of
// them wait, it refuses a request with the status 503, as the Blob service does.
type throttled struct {
	double
	each time.Duration

	mu      sync.Mutex
	free    time.Time
	refused atomic.Int64
}

func (s *throttled) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	now := time.Now()
	if s.free.Before(now) {
		s.free = now
	}
	wait := s.free.Sub(now)
	full := wait > time.Second
	if !full {
		s.free = s.free.Add(s.each)
	}
	s.mu.Unlock()
	if full {
		s.refused.Add(1)
		header := http.Header{"X-Ms-Error-Code": {"ServerBusy"}}
		return &http.Response{Status: "503 Server Busy", StatusCode: 503, Header: header, Request: r, Body: io.NopCloser(strings.NewReader(""))}, nil
	}
	select {
	case <-time.After(wait + s.each):
		return s.transport().Do(r)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// At a service that carries about 150 leases of 15 s, a process that asks for three times as many holds at least
// 80 % of what it holds if it asks for as many as fit. It loses none, and the others are refused with both figures.
func TestLoadOfAThrottledService(t *testing.T) {
	hold := func(asked int) (held int64) {
		synctest.Test(t, func(t *testing.T) {
			service := &throttled{double: newDouble(t, nil), each: time.Second / 40}
			leases := service.openVia(t, service)
			var full atomic.Pointer[engine.FullError]
			o := &session.Options{Duration: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			all := make([]*session.Session, asked)
			var got atomic.Int64
			shorthand.Together(16, asked, func(i int) {
				var err error
				if all[i], err = leases.Lease(fmt.Sprint("many/", i), o); err != nil {
					t.Error(err)
					return
				}
				for ctx.Err() == nil {
					ok, err := all[i].Acquire(ctx)
					if ok {
						got.Add(1)
						return
					}
					var refused *engine.FullError
					if errors.As(err, &refused) {
						full.Store(refused)
					}
					time.Sleep(time.Second)
				}
			})
			time.Sleep(time.Minute)
			for _, s := range all {
				if s.CheckAlive() {
					held++
				}
			}
			t.Logf("asked for %d: %d are held of %d, %d requests refused by the service; %v", asked, held, got.Load(), service.refused.Load(), full.Load())
			if lost := got.Load() - held; lost > 0 {
				t.Errorf("asked for %d: %d of %d were lost", asked, lost, got.Load())
			}
			if asked > 200 && (full.Load() == nil || full.Load().Does < 20 || full.Load().Does > 60) {
				t.Errorf("asked for %d: refused with %+v", asked, full.Load())
			}
			shorthand.Together(16, asked, func(i int) {
				for all[i].Close(context.Background()) != nil {
				}
			})
		})
		return held
	}
	if fits, more := hold(150), hold(450); more*10 < fits*8 {
		t.Errorf("asked for 450, a process holds %d leases, and %d if it asks for 150", more, fits)
	}
}
