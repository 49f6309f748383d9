package blobtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// A leaseStep is one lease operation, or one use of the blob, and the expected answer.
type leaseStep struct {
	wait   time.Duration // before the step
	what   string        // a lease action, or put, copy or sync copy
	id     string        // x-ms-lease-id
	new    string        // x-ms-proposed-lease-id
	number string        // the duration of an acquire or the period of a break
	answer string        // status and code
	left   string        // x-ms-lease-time
	state  string        // afterward: state, status and duration
}

// The test has the cases of Azurite's own lease tests, for blobs and for containers. It also has
// the cases that Azurite names but leaves empty. It has no tests of tags, append blobs or page
// blobs, because the double does not serve them.
func TestLeaseOperations(t *testing.T) {
	const (
		available, fixed, infinite     = "available unlocked ", "leased locked fixed", "leased locked infinite"
		breaking, broken, expired      = "breaking locked ", "broken unlocked ", "expired unlocked "
		n                              = "ca761232ed4211cebacd00aa0057b223" // without dashes, as Azurite's tests send it
		present, mismatch, breaking409 = "409 LeaseAlreadyPresent", "409 LeaseIdMismatchWithLeaseOperation", "409 LeaseIsBreakingAndCannotBeAcquired"
	)
	for _, o := range []struct {
		name  string
		kinds string // b for blobs, c for containers
		steps []leaseStep
	}{
		{"acquire a fixed lease with a proposed ID", "bc", []leaseStep{
			{what: "acquire", new: n, number: "30", answer: "201", state: fixed},
			{what: "release", id: n, answer: "200", state: available},
		}},
		{"acquire an infinite lease without a proposed ID", "bc", []leaseStep{
			{what: "acquire", number: "-1", answer: "201", state: infinite},
		}},
		{"release an infinite lease", "bc", []leaseStep{
			{what: "acquire", new: n, number: "-1", answer: "201", state: infinite},
			{what: "release", id: n, answer: "200", state: available},
			{what: "release", id: n, answer: mismatch, state: available},
		}},
		{"renew an expired lease", "bc", []leaseStep{
			{what: "acquire", new: n, number: "15", answer: "201", state: fixed},
			{wait: 16 * time.Second, what: "head", state: expired},
			{what: "renew", id: n, answer: "200", state: fixed},
			{wait: 15*time.Second - 1, what: "head", state: fixed},
			{wait: 1, what: "head", state: expired},
		}},
		{"change a lease", "bc", []leaseStep{
			{what: "acquire", new: n, number: "15", answer: "201", state: fixed},
			{what: "change", id: n, new: idB, answer: "200", state: fixed},
			{what: "release", id: n, answer: mismatch, state: fixed},
			{what: "release", id: idB, answer: "200", state: available},
		}},
		{"break a lease again and again", "bc", []leaseStep{
			{what: "acquire", new: n, number: "15", answer: "201", state: fixed},
			{what: "break", number: "3", answer: "202", left: "3", state: breaking},
			{wait: 500 * time.Millisecond, what: "break", number: "3", answer: "202", left: "2", state: breaking},
			{wait: time.Second, what: "break", number: "3", answer: "202", left: "1", state: breaking},
			{wait: time.Second, what: "break", number: "3", answer: "202", left: "0", state: breaking},
			{wait: 500 * time.Millisecond, what: "head", state: broken},
			{what: "release", id: n, answer: "200", state: available},
		}},
		{"another ID on a breaking lease", "bc", []leaseStep{
			{what: "acquire", new: idA, number: "60", answer: "201", state: fixed},
			{what: "break", number: "30", answer: "202", left: "30", state: breaking},
			{what: "acquire", new: idB, number: "15", answer: present, state: breaking},
			{what: "renew", id: idB, answer: mismatch, state: breaking},
			{what: "change", id: idB, new: idC, answer: mismatch, state: breaking},
			{what: "release", id: idB, answer: mismatch, state: breaking},
			{what: "acquire", new: idA, number: "15", answer: breaking409, state: breaking},
			{what: "renew", id: idA, answer: "409 LeaseIsBrokenAndCannotBeRenewed", state: breaking},
			{what: "change", id: idA, new: idB, answer: "409 LeaseIsBreakingAndCannotBeChanged", state: breaking},
		}},
		{"another ID on a broken lease", "bc", []leaseStep{
			{what: "acquire", new: idA, number: "60", answer: "201", state: fixed},
			{what: "break", number: "0", answer: "202", left: "0", state: broken},
			{what: "renew", id: idB, answer: mismatch, state: broken},
			{what: "acquire", new: idB, number: "15", answer: "201", state: fixed},
			{what: "renew", id: idA, answer: mismatch, state: fixed},
		}},
		{"break an infinite lease with a period", "bc", []leaseStep{
			{what: "acquire", new: idA, number: "-1", answer: "201", state: infinite},
			{what: "break", number: "20", answer: "202", left: "20", state: breaking},
			{wait: 20*time.Second - 1, what: "head", state: breaking},
			{wait: 1, what: "head", state: broken},
		}},
		{"break an infinite lease without a period", "bc", []leaseStep{
			{what: "acquire", new: idA, number: "-1", answer: "201", state: infinite},
			{what: "break", answer: "202", left: "0", state: broken},
		}},
		{"another ID on a leased lease", "bc", []leaseStep{
			{what: "acquire", new: idA, number: "15", answer: "201", state: fixed},
			{what: "acquire", new: idB, number: "15", answer: present, state: fixed},
			{what: "acquire", number: "15", answer: present, state: fixed},
			{what: "renew", id: idB, answer: mismatch, state: fixed},
			{what: "change", id: idB, new: idC, answer: mismatch, state: fixed},
			{what: "change", id: idB, new: idA, answer: "200", state: fixed}, // the ID has already been changed
			{what: "renew", id: idA, answer: "200", state: fixed},
		}},
		{"a put ends an expired lease", "b", []leaseStep{
			{what: "acquire", new: n, number: "20", answer: "201", state: fixed},
			{wait: 20 * time.Second, what: "put", answer: "201", state: available},
			{what: "renew", id: n, answer: mismatch, state: available},
		}},
		{"a copy keeps the lease of its destination", "b", []leaseStep{
			{what: "acquire", new: n, number: "-1", answer: "201", state: infinite},
			{what: "copy", answer: "412 LeaseIdMissing", state: infinite},
			{what: "copy", id: n, answer: "202", state: infinite},
			{what: "sync copy", id: n, answer: "202", state: infinite},
			{what: "release", id: n, answer: "200", state: available},
		}},
	} {
		for kind, target := range map[string]string{"b": path, "c": account + "/box?restype=container"} {
			if !strings.Contains(o.kinds, kind) {
				continue
			}
			t.Run(o.name+"/"+kind, func(t *testing.T) {
				c := newClient(t, blobtest.Options{})
				c.must(201, "PUT", account+"/box/source", []string{"x-ms-blob-type", "BlockBlob"}, "")
				for _, s := range o.steps {
					c.h.Clock().Advance(s.wait)
					a := s.do(c, target)
					if got := strings.TrimSpace(fmt.Sprint(a.status, " ", a.code())); s.answer != "" && got != s.answer {
						t.Fatalf("%+v: %s", s, got)
					}
					if got := a.header.Get("x-ms-lease-time"); got != s.left {
						t.Errorf("%+v: x-ms-lease-time %q", s, got)
					}
					h := c.must(200, "HEAD", target, nil, "").header
					if got := fmt.Sprint(h.Get("x-ms-lease-state"), " ", h.Get("x-ms-lease-status"), " ", h.Get("x-ms-lease-duration")); got != s.state {
						t.Errorf("%+v: %s afterward", s, got)
					}
				}
			})
		}
	}
}

func (s leaseStep) do(c *client, target string) answer {
	h := []string{}
	if s.id != "" {
		h = append(h, "x-ms-lease-id", s.id)
	}
	source := []string{"x-ms-copy-source", "http://127.0.0.1" + account + "/box/source"}
	switch s.what {
	case "head":
		return c.do("HEAD", target, h, "")
	case "put":
		return c.do("PUT", target, append(h, "x-ms-blob-type", "BlockBlob"), "")
	case "copy":
		return c.do("PUT", target, append(h, source...), "")
	case "sync copy":
		return c.do("PUT", target, append(append(h, source...), "x-ms-requires-sync", "true"), "")
	case "acquire":
		h = append(h, "x-ms-lease-duration", s.number)
	case "break":
		h = append(h, "x-ms-lease-break-period", s.number)
	}
	if s.new != "" {
		h = append(h, "x-ms-proposed-lease-id", s.new)
	}
	sep := "?"
	if strings.Contains(target, "?") {
		sep = "&"
	}
	return c.do("PUT", target+sep+"comp=lease", append(h, "x-ms-lease-action", s.what), "")
}
