package kubelease_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// The test counts the requests for a held lease, of the holder and of each of two waiters. The leases of both
// libraries last 15 s, the default of client-go. client-go renews every 2 s, and this library every 5 s.
func TestCompareRequests(t *testing.T) {
	t.Parallel()
	d := 2 * time.Minute
	if testing.Short() {
		d = 12 * time.Second
	}
	const warmUp = 5 * time.Second
	var counts [2][3]meter // of ours and of theirs; the first of each is the holder
	for i := range 3 {
		one := startSession(t, shared.Address, objectOf(t)+".ours", fmt.Sprint("session-", i), 15*time.Second, false, counts[0][i].wrap)
		other := startElector(t, shared.Address, objectOf(t)+".theirs", fmt.Sprint("elector-", i), electorTimes{15 * time.Second, 10 * time.Second, 2 * time.Second}, false, counts[1][i].wrap)
		if i == 0 {
			await(t, "we hold", one.started)
			await(t, "the elector leads", other.started)
		}
	}
	time.Sleep(warmUp) // a real engine
	for k := range counts {
		for i := range counts[k] {
			counts[k][i].writes.Store(0)
			counts[k][i].reads.Store(0)
		}
	}
	time.Sleep(d)
	perMinute := func(n *atomic.Int64) float64 { return float64(n.Load()) * float64(time.Minute) / float64(d) }
	for k, who := range []string{"ours", "client-go"} {
		c := &counts[k]
		t.Logf("%s, per minute: the holder %.1f writes, the waiters %.1f and %.1f reads", who, perMinute(&c[0].writes), perMinute(&c[1].reads), perMinute(&c[2].reads))
	}
	if n, most := counts[0][0].writes.Load(), counts[1][0].writes.Load(); n >= most {
		t.Errorf("a holder of ours has written %d times, and an elector %d times", n, most)
	}
	if n, most := counts[0][1].reads.Load()+counts[0][2].reads.Load(), counts[1][1].reads.Load()+counts[1][2].reads.Load(); n >= most {
		t.Errorf("contenders of ours have read %d times, and electors %d times", n, most)
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
