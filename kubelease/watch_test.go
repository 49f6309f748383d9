package kubelease_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// If the server does not answer the two requests of Watch within 5 s, Watch fails with a timeout, or
// with the error of the context if the caller cancels that before.
func TestWatchOfASilentServer(t *testing.T) {
	for what, hangs := range map[string]func(*http.Request) bool{
		"read":  func(*http.Request) bool { return true },
		"watch": func(q *http.Request) bool { return q.URL.Query().Has("watch") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := fake(t, "{}", hangs)
			began := time.Now()
			_, err := s.Watch(t.Context(), "job")
			says(t, err, context.DeadlineExceeded, "default/job", "no answer in time")
			if took := time.Since(began); took != 5*time.Second || errors.Is(err, context.Canceled) {
				t.Errorf("%s: after %v: %v", what, took, err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			if _, err := s.Watch(ctx, "job"); !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, canceled: %v", what, err)
			}
		})
	}
}
