package kubelease_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// A tally counts writes and reads.
type tally struct{ writes, reads atomic.Int64 }

func (c *tally) wrap(next http.RoundTripper) http.RoundTripper {
	return trip(func(q *http.Request) (*http.Response, error) {
		switch {
		case q.Method != http.MethodGet:
			c.writes.Add(1)
		case !q.URL.Query().Has("watch"):
			c.reads.Add(1)
		}
		return next.RoundTrip(q)
	})
}

// The test counts the requests for a held lease, of the holder and of each of two waiters. The leases of both
// libraries last 15 s, the default of client-go. client-go renews every 2 s, and this library every 5 s.
func TestCompareRequests(t *testing.T) {
	t.Parallel()
	d := 2 * time.Minute
	if testing.Short() {
		d = 12 * time.Second
	}
	const warmUp = 5 * time.Second
	var counts [2][3]tally // of ours and of theirs; the first of each is the holder
	for i := range 3 {
		one := startSession(t, shared.Address, objectOf(t)+".ours", fmt.Sprint("session-", i), 15*time.Second, false, counts[0][i].wrap)
		other := startElector(t, shared.Address, objectOf(t)+".theirs", fmt.Sprint("elector-", i), electorTimes{15 * time.Second, 10 * time.Second, 2 * time.Second}, false, counts[1][i].wrap)
		if i == 0 {
			await(t, "we hold", one.started)
			await(t, "the elector leads", other.started)
		}
	}
	time.Sleep(warmUp) // a real engine
	var writes, reads [2][3]int64
	for k := range counts {
		for i := range counts[k] {
			writes[k][i], reads[k][i] = -counts[k][i].writes.Load(), -counts[k][i].reads.Load()
		}
	}
	time.Sleep(d)
	for k, who := range []string{"ours", "client-go"} {
		for i := range counts[k] {
			writes[k][i] += counts[k][i].writes.Load()
			reads[k][i] += counts[k][i].reads.Load()
		}
		perMinute := func(n int64) float64 { return float64(n) * float64(time.Minute) / float64(d) }
		t.Logf("%s, per minute: the holder %.1f writes, the waiters %.1f and %.1f reads", who, perMinute(writes[k][0]), perMinute(reads[k][1]), perMinute(reads[k][2]))
	}
	if writes[0][0] >= writes[1][0] {
		t.Errorf("a holder of ours has written %d times, and an elector %d times", writes[0][0], writes[1][0])
	}
	if r := reads[0][1] + reads[0][2]; r >= reads[1][1]+reads[1][2] {
		t.Errorf("contenders of ours have read %d times", r)
	}
}

// The test measures the time until another holder has the lease, after a release, a crash and a
// partition. The leases last 3 s, and are renewed at the default intervals.
func TestCompareTakeOver(t *testing.T) {
	t.Parallel()
	tries := 9
	if testing.Short() {
		tries = 1
	}
	for _, end := range []string{"release", "crash", "partition"} {
		for _, kind := range []string{ours, theirs} {
			t.Run(end+" "+kind, func(t *testing.T) {
				t.Parallel()
				var took []time.Duration
				for i := range tries {
					took = append(took, takeOver(t, kind, kind, fmt.Sprint(objectOf(t), i), end, false).Round(time.Millisecond))
				}
				slices.Sort(took)
				t.Logf("%v (%v to %v)", took[tries/2], took[0], took[tries-1])
			})
		}
	}
}

// One process holds a thousand leases over one client, and loses none.
func TestThousandLeases(t *testing.T) {
	l := enginetest.Load{Leases: 1000, Duration: 15 * time.Second, Hold: 20 * time.Second}
	if testing.Short() {
		l.Leases, l.Hold = 100, 2*time.Second
	}
	l.Run(t, newStore(t))
}
