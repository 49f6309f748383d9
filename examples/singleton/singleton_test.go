package singleton

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// A remote authority takes a tenth of a second for a request.
type remote struct{ lease.Authority }

const latency = 100 * time.Millisecond

func (r remote) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	time.Sleep(latency / 2)
	defer time.Sleep(latency / 2)
	return r.Authority.Do(ctx, name, req)
}

type watched struct{ remote }

func (w watched) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	return w.Authority.(lease.Watcher).Watch(ctx, name)
}

// Each of five versions hands over to the next. The work rests for at most two requests, or for one
// interval more without a watch, and never overlaps.
func TestLead(t *testing.T) {
	for _, watch := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var a lease.Authority = remote{memory.New(nil).Authority()}
			most := 2*latency + interval
			if watch {
				a, most = watched{a.(remote)}, 2*latency
			}
			ctx, stop := context.WithCancel(t.Context())
			var versions sync.WaitGroup
			var stopped time.Time // when the version before has stopped
			var last lease.Token
			leads := make(chan int, 5)
			for v := range 5 {
				versions.Go(func() {
					o := &session.Options{Owner: fmt.Sprint("version ", v+1)}
					err := Lead(ctx, a, "indexer", o, func(ctx context.Context, tok lease.Token) error {
						if gap := time.Since(stopped); v > 0 && (stopped.IsZero() || gap > most) {
							t.Errorf("the work rested for %v, want at most %v", gap, most)
						} else if v > 0 {
							t.Logf("the work rested for %v", gap)
						}
						if last != "" && last.Compare(tok) >= 0 {
							t.Errorf("token %s after %s", tok, last)
						}
						stopped, last = time.Time{}, tok
						leads <- v
						<-ctx.Done()
						time.Sleep(time.Second)
						stopped = time.Now()
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
				if got := <-leads; got != v {
					t.Errorf("version %d leads", got)
				}
				time.Sleep(time.Minute)
			}
			stop()
			versions.Wait()
		})
	}
}
