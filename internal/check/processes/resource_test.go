package processes

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// The resource reports each violation that the guard lets pass, and no other violation.
func TestResource(t *testing.T) {
	const a, b = "a", "b"
	old, newer := lease.TokenOf(7), lease.TokenOf(8)
	type request struct {
		holder string
		tok    lease.Token
		body   string // the body of a write; empty for a read
		stale  bool   // whether the guard refuses the request as stale
	}
	read := func(h string, tok lease.Token) request { return request{h, tok, "", false} }
	write := func(h string, tok lease.Token, body string) request { return request{h, tok, body, false} }
	refused := func(q request) request { q.stale = true; return q }
	for what, c := range map[string]struct {
		wrong    Wrong
		requests []request
		bad      string // the violation that the resource reports; empty if there is no violation
	}{
		"in turns":      {"", []request{read(a, old), write(a, old, "0 1"), read(b, newer), write(b, newer, "1 2"), refused(write(a, old, "1 2"))}, ""},
		"a stale write": {NoGuard, []request{read(a, old), read(b, newer), write(a, old, "0 1")}, "a stale write passed"},
		"a stale read":  {NoGuard, []request{read(b, newer), read(a, old)}, "a stale read passed"},
		"a lost update": {"", []request{read(a, old), write(a, old, "0 1"), write(b, newer, "0 1")}, "an update was lost"},
		"one token":     {"", []request{read(a, old), read(b, old)}, "was shown by a and by b"},
	} {
		t.Run(what, func(t *testing.T) {
			r, err := newResource(c.wrong)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			refusals, writes, tokens := 0, 0, map[lease.Token]bool{}
			for _, q := range c.requests {
				h := &holder{orders: orders{Holder: q.holder, Resource: r.url}, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
				method := "GET"
				if q.body != "" {
					method = "PUT"
				}
				_, err := h.do(method, "/count", q.tok, q.body)
				if stale := errors.Is(err, fencing.ErrStale); stale != q.stale || err != nil && !stale {
					t.Fatalf("%+v: %v", q, err)
				}
				switch {
				case q.stale:
					refusals++
					continue
				case q.body != "":
					writes++
				}
				tokens[q.tok] = true
			}
			seen := r.seen()
			if seen.Refused != refusals || seen.Admitted != writes || seen.Grants != len(tokens) {
				t.Errorf("%+v, want %d refusals, %d writes and %d tokens", seen, refusals, writes, len(tokens))
			}
			if text := strings.Join(seen.Bad, "\n"); len(seen.Bad) > 1 || (c.bad == "") != (text == "") || !strings.Contains(text, c.bad) {
				t.Errorf("found %q, want %q", text, c.bad)
			}
		})
	}
}
