package blobtest_test

import (
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// The rates are real time, a day in each second, and eleven days in each second. At the highest rate, a
// second passes in a microsecond, so two readings of the clock within one request always differ.
var rates = []float64{1, 86_400, 1e6}

// SPEC W5: the answer to a break with a period contains the full period, even if the clock runs.
func TestBreakPeriodOnARunningClock(t *testing.T) {
	for _, rate := range rates {
		c := newClient(t, blobtest.Options{Clock: leasefault.NewClockAt(start, rate)})
		for _, period := range []string{"60", "20", "5", "1"} {
			c.acquire(idA, "-1")
			if got := c.lease(202, "break", "x-ms-lease-break-period", period).header.Get("x-ms-lease-time"); got != period {
				t.Errorf("at rate %v, a break in %s: x-ms-lease-time %s", rate, period, got)
			}
			c.lease(200, "release", "x-ms-lease-id", idA)
		}
	}
}

// SPEC W5: an authority that the test passes to the server can read its clock more than once, and can
// commit a break later than it decided it. The answer to the break is still the period.
func TestBreakPeriodOfAGivenAuthority(t *testing.T) {
	still, real, fast := leasefault.NewClockAt(start, 0), leasefault.NewClockAt(start, 1), leasefault.NewClockAt(start, 86_400)
	for name, o := range map[string]struct {
		store *memory.Store
		clock *leasefault.Clock
		wait  func() // lets 30 s pass
	}{
		"real":       {memory.New(&memory.Options{Clock: real}), real, func() { real.Step(30 * time.Second) }},
		"fast":       {memory.New(&memory.Options{Clock: fast}), fast, func() { fast.Step(30 * time.Second) }},
		"of its own": {memory.New(&memory.Options{Clock: real}), still, func() { real.Step(30 * time.Second) }},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := blobtest.NewHandler(o.store.Authority(), &blobtest.Options{AllowAnyone: true, Clock: o.clock})
			if err != nil {
				t.Fatal(err)
			}
			c := &client{t, h, today}
			c.must(201, "PUT", account+"/box?restype=container", nil, "")
			c.put(201)
			c.acquire(idA, "-1")
			if got := c.lease(202, "break", "x-ms-lease-break-period", "60").header.Get("x-ms-lease-time"); got != "60" {
				t.Errorf("x-ms-lease-time %s, want 60", got)
			}
			// The lease is breaking, and has less than 60 s left, so the new period has no effect.
			o.wait()
			if got := c.lease(202, "break", "x-ms-lease-break-period", "60").header.Get("x-ms-lease-time"); got == "60" {
				t.Errorf("x-ms-lease-time %s 30 s after a break in 60 s", got)
			}
		})
	}
}

// SPEC W5: the Date of an answer is the time at which the request took effect.
func TestOneTimeForEachRequest(t *testing.T) {
	c := newClient(t, blobtest.Options{Clock: leasefault.NewClockAt(start, 1e6)})
	for _, o := range []struct {
		status         int
		method, target string
		h              []string
	}{
		{201, "PUT", account + "/another?restype=container", nil},
		{200, "PUT", account + "/another?restype=container&comp=metadata", nil},
		{201, "PUT", path, []string{"x-ms-blob-type", "BlockBlob"}},
		{200, "PUT", path + "?comp=metadata", nil},
		{202, "PUT", account + "/box/copy", []string{"x-ms-copy-source", "http://127.0.0.1" + path}},
	} {
		a := c.must(o.status, o.method, o.target, o.h, "")
		if date, modified := a.header.Get("Date"), a.header.Get("Last-Modified"); date != modified {
			t.Errorf("%s %s: Date %s, Last-Modified %s", o.method, o.target, date, modified)
		}
	}
	// A renewal does not fail because the lease ends while the request is carried out.
	for range 100 {
		id := c.lease(201, "acquire", "x-ms-lease-duration", "15").header.Get("x-ms-lease-id")
		c.lease(200, "renew", "x-ms-lease-id", id)
		c.lease(200, "release", "x-ms-lease-id", id)
	}
}

// The server's own authority lists its leases at the time of the server's clock. The body of the loop
// over the list may use both.
func TestOwnAuthorityLists(t *testing.T) {
	for _, rate := range []float64{0, 1} {
		c := newClient(t, blobtest.Options{Clock: leasefault.NewClockAt(start, rate)})
		c.acquire(idA, "15")
		lister, ok := c.h.Authority().(lease.Lister)
		if !ok {
			t.Fatalf("%T is no Lister", c.h.Authority())
		}
		name := blobtest.LeaseName(blobtest.DefaultAccount, "box", "blob")
		for _, want := range []lease.State{lease.Leased, lease.Expired} {
			found := 0
			for e, err := range lister.List(t.Context(), name) {
				if err != nil {
					t.Fatal(err)
				}
				found++
				if e.Name != name || e.Record.ID != vectors.MustParseID(idA) || e.Record.State != want {
					t.Errorf("rate %v: listed %q, %+v, want %v", rate, e.Name, e.Record, want)
				}
				if now := c.h.Clock().Now(); e.Now.After(now) || e.Now.Before(now.Add(-time.Minute)) {
					t.Errorf("rate %v: listed at %v, and the clock shows %v", rate, e.Now, now)
				}
				if _, err := lease.Inspect(t.Context(), c.h.Authority(), name); err != nil {
					t.Fatal(err)
				}
				c.h.Clock().Step(20 * time.Second)
			}
			if found != 1 {
				t.Errorf("rate %v: listed %d leases under %q, want 1", rate, found, name)
			}
		}
	}
}
