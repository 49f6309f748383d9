package main

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// After a minute with one break, the page has the lines of the file metrics.txt, which README.md shows.
// The histograms depend on the random times of the renewals, so their buckets are left out.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace, page, err := metrics()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		store := memory.New(nil)
		go func() { ended <- lead(ctx, store, trace) }()
		time.Sleep(35 * time.Second)
		if _, err := lease.Break(ctx, store.Authority(), "indexer/leader", lease.Grace(15*time.Second)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		response := httptest.NewRecorder()
		page.ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want, err := os.ReadFile("metrics.txt")
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for line := range strings.Lines(response.Body.String()) {
			counted := strings.HasPrefix(line, "lease_held") || strings.HasPrefix(line, "lease_terms") || strings.HasPrefix(line, "lease_breaks")
			if counted || strings.HasPrefix(line, "lease_acquisition_duration_seconds_count") {
				got.WriteString(line)
			}
		}
		if got.String() != string(want) {
			t.Errorf("the page has\n%s, want\n%s", got.String(), want)
		}
		if !strings.Contains(response.Body.String(), `lease_renewal_margin_bucket{lease_name="indexer/leader",le="0.65"}`) {
			t.Error("the page has no histogram of the margin")
		}
	})
}
