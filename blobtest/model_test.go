package blobtest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease/blobtest"
)

// A dumb blob is the lease of one blob as a reader of the document would write it down, in
// the words of the service: seconds and strings, and nothing of this library.
type dumb struct {
	now, end int // seconds; end -1: never
	state    string
	id       string
	seconds  int
}

func (d *dumb) pass() {
	if d.end >= 0 && d.now >= d.end {
		switch d.state {
		case "leased":
			d.state = "expired"
		case "breaking":
			d.state = "broken"
		}
	}
}

func (d *dumb) locked() bool { return d.state == "leased" || d.state == "breaking" }

func (d *dumb) start(seconds int) {
	d.state, d.seconds, d.end = "leased", seconds, d.now+seconds
	if seconds < 0 {
		d.end = -1
	}
}

func (d *dumb) acquire(id string, seconds int) (int, string) {
	switch {
	case d.locked() && d.id != id:
		return 409, "LeaseAlreadyPresent"
	case d.state == "breaking":
		return 409, "LeaseIsBreakingAndCannotBeAcquired"
	}
	d.id = id
	d.start(seconds)
	return 201, ""
}

func (d *dumb) renew(id string) (int, string) {
	switch {
	case d.state == "available" || d.id != id:
		return 409, "LeaseIdMismatchWithLeaseOperation"
	case d.state == "breaking" || d.state == "broken":
		return 409, "LeaseIsBrokenAndCannotBeRenewed"
	}
	d.start(d.seconds)
	return 200, ""
}

func (d *dumb) change(id, proposed string) (int, string) {
	switch {
	case !d.locked():
		return 409, "LeaseNotPresentWithLeaseOperation"
	case d.state == "leased" && d.id == proposed:
		return 200, ""
	case d.id != id:
		return 409, "LeaseIdMismatchWithLeaseOperation"
	case d.state == "breaking":
		return 409, "LeaseIsBreakingAndCannotBeChanged"
	}
	d.id = proposed
	return 200, ""
}

func (d *dumb) release(id string) (int, string) {
	if d.state == "available" || d.id != id {
		return 409, "LeaseIdMismatchWithLeaseOperation"
	}
	d.state = "available"
	return 200, ""
}

// breaks also returns the time left. A negative period is an absent one.
func (d *dumb) breaks(period int) (int, string, int) {
	switch d.state {
	case "available":
		return 409, "LeaseNotPresentWithLeaseOperation", 0
	case "expired", "broken":
		d.state = "broken"
		return 202, "", 0
	}
	if period < 0 && d.end < 0 {
		period = 0
	}
	if period >= 0 && (d.end < 0 || d.now+period < d.end) {
		d.end = d.now + period
	}
	d.state = "breaking"
	d.pass()
	return 202, "", d.end - d.now
}

// use is a read or a write with an ID, or without one if that is empty.
func (d *dumb) use(id string, write bool) (int, string) {
	ok := 200
	if write {
		ok = 201
	}
	switch {
	case id == "" && write && d.locked():
		return 412, "LeaseIdMissing"
	case id == "":
		if write {
			d.state, d.id = "available", ""
		}
		return ok, ""
	case d.locked() && d.id == id:
		return ok, ""
	case d.locked():
		return 412, "LeaseIdMismatchWithBlobOperation"
	case d.id == id:
		return 412, "LeaseLost"
	}
	return 412, "LeaseNotPresentWithBlobOperation"
}

// Whatever is done to one blob in whatever order, the server answers as the dumb one does.
func TestDumb(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newClient(t, blobtest.Options{})
		d := &dumb{state: "available"}
		ids := rapid.SampledFrom([]string{idA, idB, idC})
		maybe := rapid.SampledFrom([]string{"", idA, idB})
		do := func(what string, method string, h []string, status int, code string) answer {
			target := path
			if method == "PUT" && len(h) > 0 && h[0] == "x-ms-lease-action" {
				target += "?comp=lease"
			}
			a := c.do(method, target, h, "")
			if a.status != status || a.code() != code {
				rt.Fatalf("%s: %d %s, want %d %s", what, a.status, a.code(), status, code)
			}
			return a
		}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(rt *rapid.T) {
				id, s := ids.Draw(rt, "id"), rapid.SampledFrom([]int{15, 60, -1}).Draw(rt, "seconds")
				status, code := d.acquire(id, s)
				do("acquire", "PUT", []string{"x-ms-lease-action", "acquire", "x-ms-proposed-lease-id", id, "x-ms-lease-duration", strconv.Itoa(s)}, status, code)
			},
			"renew": func(rt *rapid.T) {
				id := ids.Draw(rt, "id")
				status, code := d.renew(id)
				do("renew", "PUT", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", id}, status, code)
			},
			"change": func(rt *rapid.T) {
				id, proposed := ids.Draw(rt, "id"), ids.Draw(rt, "proposed")
				status, code := d.change(id, proposed)
				do("change", "PUT", []string{"x-ms-lease-action", "change", "x-ms-lease-id", id, "x-ms-proposed-lease-id", proposed}, status, code)
			},
			"release": func(rt *rapid.T) {
				id := ids.Draw(rt, "id")
				status, code := d.release(id)
				do("release", "PUT", []string{"x-ms-lease-action", "release", "x-ms-lease-id", id}, status, code)
			},
			"break": func(rt *rapid.T) {
				period := rapid.IntRange(-1, 60).Draw(rt, "period")
				h := []string{"x-ms-lease-action", "break"}
				if period >= 0 {
					h = append(h, "x-ms-lease-break-period", strconv.Itoa(period))
				}
				status, code, left := d.breaks(period)
				a := do("break", "PUT", h, status, code)
				if got := a.header.Get("x-ms-lease-time"); status == 202 && got != strconv.Itoa(left) {
					rt.Fatalf("break: time left %s, want %d", got, left)
				}
			},
			"write": func(rt *rapid.T) {
				id := maybe.Draw(rt, "id")
				status, code := d.use(id, true)
				h := []string{"x-ms-blob-type", "BlockBlob"}
				if id != "" {
					h = append(h, "x-ms-lease-id", id)
				}
				do("write", "PUT", h, status, code)
			},
			"read": func(rt *rapid.T) {
				id := maybe.Draw(rt, "id")
				status, code := d.use(id, false)
				h := []string{}
				if id != "" {
					h = []string{"x-ms-lease-id", id}
				}
				do("read", "GET", h, status, code)
			},
			"wait": func(rt *rapid.T) {
				s := rapid.IntRange(1, 61).Draw(rt, "seconds")
				c.h.Clock().Advance(time.Duration(s) * time.Second)
				d.now += s
				d.pass()
			},
			"": func(rt *rapid.T) {
				a := c.do("HEAD", path, nil, "")
				if got := a.header.Get("x-ms-lease-state"); got != d.state {
					rt.Fatalf("state %s, want %s", got, fmt.Sprint(d))
				}
			},
		})
	})
}
