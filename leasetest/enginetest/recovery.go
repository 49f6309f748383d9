package enginetest

import (
	"context"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// RecoversAfterCuts checks that a client recovers when its server can be reached again. The client is the
// given authority, which must reach its server through the proxy p. The proxy refuses all connections until
// the client has retried for three seconds. After that, a request of the client must succeed within a time
// limit. This limit is the last parameter.
func RecoversAfterCuts(t *testing.T, p *Proxy, a lease.Authority, name string, most time.Duration) {
	t.Helper()
	shorthand.Do(t, a, name, shorthand.Acquire(shorthand.IDA, time.Hour), 0)
	p.Refuse()
	p.Cut()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := a.Do(ctx, name, shorthand.Renew(shorthand.IDA)); err == nil {
			t.Error("renewed while nothing gets through")
		}
		<-ctx.Done() // without a connection, a request may fail at once
		cancel()
	}
	p.Heal()
	began := time.Now()
	shorthand.Eventually(t, "a renewal", func(ctx context.Context) error {
		_, err := a.Do(ctx, name, shorthand.Renew(shorthand.IDA))
		return err
	})
	if took := time.Since(began); took > most {
		t.Errorf("recovered after %v, want at most %v", took, most)
	} else {
		t.Logf("recovered after %v", took)
	}
}
