package memory_test

import (
	"math"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

// once leases and releases n names, one after the other.
func once(tb testing.TB, a lease.Authority, prefix string, n int) {
	tb.Helper()
	for i := range n {
		name := prefix + strconv.Itoa(i)
		do(tb, a, name, acquire)
		do(tb, a, name, release)
	}
}

// lasting leases n names for the duration d.
func lasting(tb testing.TB, a lease.Authority, prefix string, n int, d time.Duration) {
	tb.Helper()
	req := acquire
	req.Duration = d
	for i := range n {
		do(tb, a, prefix+strconv.Itoa(i), req)
	}
}

// states counts the records that a Store remembers, by state.
func states(tb testing.TB, s *memory.Store) map[lease.State]int {
	n := make(map[lease.State]int)
	for _, e := range list(tb, s, "") {
		n[e.Record.State]++
	}
	return n
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Names that are leased and released once do not stay in memory, even if the clock stands still: neither if
// they come one after the other, nor if all are leased before the first is released, after which the maps
// shrink again.
func TestManyNames(t *testing.T) {
	const n = 100_000
	for what, use := range map[string]func(a lease.Authority){
		"one after the other": func(a lease.Authority) { once(t, a, "once-", n) },
		"all at once": func(a lease.Authority) {
			lasting(t, a, "once-", n, time.Hour)
			for i := range n {
				do(t, a, "once-"+strconv.Itoa(i), release)
			}
		},
	} {
		s := memory.New(&memory.Options{Clock: fixed(time.Unix(0, 0))})
		before := heap()
		use(s.Authority())
		grown, kept := int64(heap()-before), len(list(t, s, ""))
		if kept != memory.Idle || grown > 5<<19 {
			t.Errorf("%s: %d records and %d bytes are kept of %d names", what, kept, grown, n)
		}
		runtime.KeepAlive(s)
	}
}

// A Store remembers the 64 records that became Available most recently, even if all are in the same shard.
func TestLastIdleAreRemembered(t *testing.T) {
	s := memory.New(nil)
	a := s.Authority()
	once(t, a, "old-", 2*memory.Idle)
	const last = memory.Idle / 64
	once(t, a, "last-", last)
	for i := range last {
		if got := load(t, s, "last-"+strconv.Itoa(i)); got.Record.ID != holder {
			t.Errorf("%d was forgotten: %+v", i, got.Record)
		}
	}
	// A record that is used again is not among the first records that are forgotten.
	do(t, a, "last-0", acquire)
	once(t, a, "new-", 4*memory.Idle)
	if got := load(t, s, "last-0"); got.Record.State != lease.Leased {
		t.Errorf("in use, and forgotten: %+v", got.Record)
	}
}

// The default of Retention is five minutes. With the longest Retention, the Store never forgets an Expired
// or Broken record.
func TestRetention(t *testing.T) {
	for _, c := range []struct {
		set, after time.Duration
		kept       int
	}{{0, 5*time.Minute - 1, 10}, {0, 5 * time.Minute, 0}, {math.MaxInt64, 365 * 24 * time.Hour, 10}} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.New(&memory.Options{Retention: c.set})
			a := s.Authority()
			lasting(t, a, "expired-", 10, time.Second)
			time.Sleep(time.Second + c.after)
			once(t, a, "other-", 3*memory.Idle)
			if n := states(t, s)[lease.Expired]; n != c.kept {
				t.Errorf("Retention %v: %d of 10 are remembered after %v, want %d", c.set, n, c.after, c.kept)
			}
		})
	}
}

// If a record ended more than the retention time before it is swapped in, the same Swap may forget it. It
// can then be swapped in again.
func TestForgottenAtOnce(t *testing.T) {
	s := memory.New(&memory.Options{Clock: fixed(time.Unix(0, 0)), Retention: time.Minute})
	var epoch uint64
	for range 3 {
		old := load(t, s, "a")
		if old.Record != (lease.Record{Epoch: epoch}) {
			t.Fatalf("not forgotten: %+v", old.Record)
		}
		next := leased(old, -time.Minute) // as a computer might write it after it was suspended
		next.Duration = time.Second
		if put := swap(t, s, "a", old, next); put.Record != next {
			t.Fatalf("swapped %+v, got %+v", next, put)
		}
		epoch++
	}
	if all := list(t, s, ""); len(all) != 0 {
		t.Errorf("remembers %+v", all)
	}
}

// If a Store gets no new names, its renewals forget old records.
func TestForgettingByRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(&memory.Options{Retention: time.Second})
		a := s.Authority()
		const kept = 3_000
		lasting(t, a, "once-", 10_000, time.Second)
		lasting(t, a, "kept-", kept, lease.Infinite)
		time.Sleep(2 * time.Second)
		for rounds := 0; states(t, s)[lease.Expired] > 0; rounds++ {
			if rounds == 100 {
				t.Fatalf("after %d renewals: %v", rounds*10*kept, states(t, s))
			}
			for i := range 10 * kept {
				do(t, a, "kept-"+strconv.Itoa(i%kept), renew)
			}
		}
		if got := states(t, s); got[lease.Leased] != kept {
			t.Errorf("%v", got)
		}
	})
}

// If every name is leased once and expires, a Store remembers about twice as many records as it must.
func TestMemoryOfExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(&memory.Options{Retention: time.Second})
		a := s.Authority()
		const must = 20_000 // the number of names that are leased in 2 s
		most := 0
		for i := range 60 {
			lasting(t, a, "once-"+strconv.Itoa(i)+"-", must/20, time.Second)
			if i%10 == 0 {
				most = max(most, len(list(t, s, "")))
			}
			time.Sleep(2 * time.Second / 20)
		}
		if most > 2*must+memory.Idle {
			t.Errorf("%d records, of which %d must be remembered", most, must)
		}
		t.Logf("at most %d records, of which %d must be remembered", most, must)
	})
}

// A Store does not forget a locked lease, even if the clock is set forward by the longest Duration.
func TestLocksOutliveTheLongestStep(t *testing.T) {
	for what, c := range map[string]struct{ start, later time.Time }{
		"by Infinite":   {time.Unix(0, 0), time.Unix(0, 0).Add(lease.Infinite)},
		"by 2000 years": {time.Time{}.Add(time.Hour), time.Unix(0, 0)},
	} {
		for _, d := range []time.Duration{time.Minute, lease.Infinite} {
			clock := &hand{now: c.start}
			a := memory.New(&memory.Options{Clock: clock}).Authority()
			req := acquire
			req.Duration = d
			if d == lease.Infinite {
				do(t, a, "a", req)
			}
			clock.set(c.later)
			if d != lease.Infinite {
				do(t, a, "a", req)
			}
			lasting(t, a, "other", 2000, time.Minute)
			req.Proposed = lease.ID{99}
			if res, err := a.Do(t.Context(), "a", req); lease.CodeOf(err) != lease.ErrHeldByOther {
				t.Errorf("%s: after an acquire for %v, another gets %v, %v", what, d, res.Record, err)
			}
		}
	}
}
