package blobtest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease/blobtest"
)

// A model is a model of the lease of one blob, written from the published document with seconds and
// strings. The model uses no code of this library.
type model struct {
	now, end int // seconds; end is -1 if the lease has no end
	state    string
	id       string
	seconds  int
}

func (m *model) pass() {
	if m.end >= 0 && m.now >= m.end {
		switch m.state {
		case "leased":
			m.state = "expired"
		case "breaking":
			m.state = "broken"
		}
	}
}

func (m *model) locked() bool { return m.state == "leased" || m.state == "breaking" }

func (m *model) start(seconds int) {
	m.state, m.seconds, m.end = "leased", seconds, m.now+seconds
	if seconds < 0 {
		m.end = -1
	}
}

func (m *model) acquire(id string, seconds int) (int, string) {
	switch {
	case m.locked() && m.id != id:
		return 409, "LeaseAlreadyPresent"
	case m.state == "breaking":
		return 409, "LeaseIsBreakingAndCannotBeAcquired"
	}
	m.id = id
	m.start(seconds)
	return 201, ""
}

func (m *model) renew(id string) (int, string) {
	switch {
	case m.state == "available" || m.id != id:
		return 409, "LeaseIdMismatchWithLeaseOperation"
	case m.state == "breaking" || m.state == "broken":
		return 409, "LeaseIsBrokenAndCannotBeRenewed"
	}
	m.start(m.seconds)
	return 200, ""
}

func (m *model) change(id, proposed string) (int, string) {
	switch {
	case !m.locked():
		return 409, "LeaseNotPresentWithLeaseOperation"
	case m.state == "leased" && m.id == proposed:
		return 200, ""
	case m.id != id:
		return 409, "LeaseIdMismatchWithLeaseOperation"
	case m.state == "breaking":
		return 409, "LeaseIsBreakingAndCannotBeChanged"
	}
	m.id = proposed
	return 200, ""
}

func (m *model) release(id string) (int, string) {
	if m.state == "available" || m.id != id {
		return 409, "LeaseIdMismatchWithLeaseOperation"
	}
	m.state = "available"
	return 200, ""
}

// breaks breaks the lease, and also returns the remaining time. If the period is negative, the
// break has no period.
func (m *model) breaks(period int) (int, string, int) {
	switch m.state {
	case "available":
		return 409, "LeaseNotPresentWithLeaseOperation", 0
	case "expired", "broken":
		m.state = "broken"
		return 202, "", 0
	}
	if period < 0 && m.end < 0 {
		period = 0
	}
	if period >= 0 && (m.end < 0 || m.now+period < m.end) {
		m.end = m.now + period
	}
	m.state = "breaking"
	m.pass()
	return 202, "", m.end - m.now
}

// use reads or writes the blob. If id is empty, the request has no lease ID.
func (m *model) use(id string, write bool) (int, string) {
	ok := 200
	if write {
		ok = 201
	}
	switch {
	case id == "" && write && m.locked():
		return 412, "LeaseIdMissing"
	case id == "":
		if write {
			m.state, m.id = "available", ""
		}
		return ok, ""
	case m.locked() && m.id == id:
		return ok, ""
	case m.locked():
		return 412, "LeaseIdMismatchWithBlobOperation"
	case m.id == id:
		return 412, "LeaseLost"
	}
	return 412, "LeaseNotPresentWithBlobOperation"
}

// The server gives the same answers as the model to every sequence of operations on one blob.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newClient(t, blobtest.Options{})
		m := &model{state: "available"}
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
				status, code := m.acquire(id, s)
				do("acquire", "PUT", []string{"x-ms-lease-action", "acquire", "x-ms-proposed-lease-id", id, "x-ms-lease-duration", strconv.Itoa(s)}, status, code)
			},
			"renew": func(rt *rapid.T) {
				id := ids.Draw(rt, "id")
				status, code := m.renew(id)
				do("renew", "PUT", []string{"x-ms-lease-action", "renew", "x-ms-lease-id", id}, status, code)
			},
			"change": func(rt *rapid.T) {
				id, proposed := ids.Draw(rt, "id"), ids.Draw(rt, "proposed")
				status, code := m.change(id, proposed)
				do("change", "PUT", []string{"x-ms-lease-action", "change", "x-ms-lease-id", id, "x-ms-proposed-lease-id", proposed}, status, code)
			},
			"release": func(rt *rapid.T) {
				id := ids.Draw(rt, "id")
				status, code := m.release(id)
				do("release", "PUT", []string{"x-ms-lease-action", "release", "x-ms-lease-id", id}, status, code)
			},
			"break": func(rt *rapid.T) {
				period := rapid.IntRange(-1, 60).Draw(rt, "period")
				h := []string{"x-ms-lease-action", "break"}
				if period >= 0 {
					h = append(h, "x-ms-lease-break-period", strconv.Itoa(period))
				}
				status, code, left := m.breaks(period)
				a := do("break", "PUT", h, status, code)
				if got := a.header.Get("x-ms-lease-time"); status == 202 && got != strconv.Itoa(left) {
					rt.Fatalf("break: time left %s, want %d", got, left)
				}
			},
			"write": func(rt *rapid.T) {
				id := maybe.Draw(rt, "id")
				status, code := m.use(id, true)
				h := []string{"x-ms-blob-type", "BlockBlob"}
				if id != "" {
					h = append(h, "x-ms-lease-id", id)
				}
				do("write", "PUT", h, status, code)
			},
			"read": func(rt *rapid.T) {
				id := maybe.Draw(rt, "id")
				status, code := m.use(id, false)
				h := []string{}
				if id != "" {
					h = []string{"x-ms-lease-id", id}
				}
				do("read", "GET", h, status, code)
			},
			"wait": func(rt *rapid.T) {
				s := rapid.IntRange(1, 61).Draw(rt, "seconds")
				c.h.Clock().Advance(time.Duration(s) * time.Second)
				m.now += s
				m.pass()
			},
			"": func(rt *rapid.T) {
				a := c.do("HEAD", path, nil, "")
				if got := a.header.Get("x-ms-lease-state"); got != m.state {
					rt.Fatalf("state %s, want %s", got, fmt.Sprint(m))
				}
			},
		})
	})
}
