package fencing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// newHandler returns a Handler for next.
func newHandler(t testing.TB, next http.HandlerFunc, o *fencing.Options) http.Handler {
	t.Helper()
	h, err := fencing.Handler(next, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// send serves a request that has the given header with the given values.
func send(h http.Handler, header string, values ...string) *http.Response {
	r := httptest.NewRequest("PUT", "/things/1", strings.NewReader("body"))
	for _, v := range values {
		r.Header.Add(header, v)
	}
	return serve(h, r)
}

func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

func TestHandlerTable(t *testing.T) {
	t7, t8, t9, t10 := string(tok(7)), string(tok(8)), string(tok(9)), string(tok(10))
	for _, c := range []struct {
		name   string
		mark   lease.Token
		values []string
		status int
		seen   string
		says   string
	}{
		{"first", "", []string{t8}, 204, "", ""},
		{"equal", tok(8), []string{t8}, 204, "", ""},
		{"newer", tok(8), []string{t9}, 204, "", ""},
		{"stale", tok(8), []string{t7}, 412, t8, "fencing: stale token " + t7 + ": " + t8 + " has been seen"},
		{"stale, by a digit", tok(10), []string{t9}, 412, t10, t10 + " has been seen"},
		{"missing", tok(8), nil, 400, "", "Header Fencing-Token = 0 values: must be given exactly once"},
		{"empty", tok(8), []string{""}, 400, "", `Token = "": must be 20 decimal digits`},
		{"twice", tok(8), []string{t9, t9}, 400, "", "Header Fencing-Token = 2 values: must be given exactly once"},
		{"twice, a good one first", tok(8), []string{t9, "x"}, 400, "", "2 values"},
		{"in a list", tok(8), []string{t9 + ", " + t9}, 400, "", "must be 20 decimal digits"},
		{"not padded", tok(8), []string{"9"}, 400, "", "must be 20 decimal digits"},
		{"zero", tok(8), []string{"00000000000000000000"}, 400, "", "must be 20 decimal digits"},
		{"beyond the limit", tok(8), []string{"09223372036854775808"}, 400, "", "must be 20 decimal digits"},
		{"sorts above every token", tok(8), []string{"zzzzzzzzzzzzzzzzzzzz"}, 400, "", "must be 20 decimal digits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := fencing.NewGuard(c.mark)
			if err != nil {
				t.Fatal(err)
			}
			called := false
			h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {
				called = true
				if body, err := io.ReadAll(r.Body); string(body) != "body" || err != nil {
					t.Errorf("the handler read %q, %v", body, err)
				}
				w.WriteHeader(http.StatusNoContent)
			}, &fencing.Options{Guard: func(*http.Request) (*fencing.Guard, error) { return g, nil }})
			resp := send(h, "fencing-token", c.values...)
			if resp.StatusCode != c.status || called != (c.status == 204) {
				t.Errorf("status %d, called %v; want %d", resp.StatusCode, called, c.status)
			}
			if seen := resp.Header.Get("Fencing-Token-Seen"); seen != c.seen {
				t.Errorf("seen %q, want %q", seen, c.seen)
			}
			if got := text(t, resp); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
				t.Errorf("says %q, want %q", got, c.says)
			}
			want := c.mark
			if called {
				want = lease.Token(c.values[0])
			}
			if g.Seen() != want {
				t.Errorf("the mark is %q, want %q", g.Seen(), want)
			}
		})
	}
}

// Without options, all requests share one guard. An option chooses the name of the header.
func TestHandlerDefaults(t *testing.T) {
	next := func(w http.ResponseWriter, r *http.Request) {}
	for _, o := range []*fencing.Options{nil, {}, {Header: "X-Term"}} {
		header := "Fencing-Token"
		if o != nil && o.Header != "" {
			header = string(o.Header)
		}
		h := newHandler(t, next, o)
		if resp := send(h, header, string(tok(2))); resp.StatusCode != 200 {
			t.Errorf("%+v: %s", o, resp.Status)
		}
		resp := send(h, header, string(tok(1)))
		if resp.StatusCode != 412 || resp.Header.Get(header+"-Seen") != string(tok(2)) {
			t.Errorf("%+v: %s, %v", o, resp.Status, resp.Header)
		}
		if resp := send(h, "Another", string(tok(3))); resp.StatusCode != 400 {
			t.Errorf("%+v: another header: %s", o, resp.Status)
		}
		if resp := send(newHandler(t, next, o), header, string(tok(1))); resp.StatusCode != 200 {
			t.Errorf("%+v: two handlers share a guard: %s", o, resp.Status)
		}
	}
}

// The wrapped handler need not be an http.HandlerFunc.
func TestHandlerOfAnotherKind(t *testing.T) {
	if h, err := fencing.Handler(http.NewServeMux(), nil); h == nil || err != nil {
		t.Errorf("a mux: %v, %v", h, err)
	}
}

func TestHandlerRefusesBadOptions(t *testing.T) {
	for _, c := range []struct {
		name, field string
		make        func() (http.Handler, error)
	}{
		{"header with spaces", "Options.Header", func() (http.Handler, error) { return handlerOf("a b") }},
		{"header with colon", "Options.Header", func() (http.Handler, error) { return handlerOf("a:") }},
		{"header of the host", "Options.Header", func() (http.Handler, error) { return handlerOf("host") }},
		{"header not ASCII", "Options.Header", func() (http.Handler, error) { return handlerOf("é") }},
		{"no handler", "Handler.next", func() (http.Handler, error) { return fencing.Handler(nil, nil) }},
		{"no function", "Handler.next", func() (http.Handler, error) { return fencing.Handler(http.HandlerFunc(nil), nil) }},
	} {
		var field *lease.FieldError
		if h, err := c.make(); h != nil || !errors.As(err, &field) || field.Field != c.field || field.Code != lease.ErrOption {
			t.Errorf("%s: %v, %v; want a FieldError of %s with ErrOption", c.name, h, err, c.field)
		}
	}
}

func handlerOf(h fencing.Header) (http.Handler, error) {
	return fencing.Handler(http.NotFoundHandler(), &fencing.Options{Header: h})
}

func TestHandlerGuardsByKey(t *testing.T) {
	guards := fencing.Guards{Max: 2}
	h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {}, &fencing.Options{
		Guard: guards.For(func(r *http.Request) string { return r.URL.Query().Get("name") }),
	})
	for _, c := range []struct {
		name   string
		token  lease.Token
		status int
	}{
		{"a", tok(9), 200},
		{"b", tok(1), 200}, // the tokens of a do not affect b
		{"a", tok(8), 412},
		{"", tok(9), 400},       // the name is malformed
		{"c", tok(9), 503},      // the set of guards is full
		{"d", "malformed", 400}, // a malformed token makes no guard
		{"b", tok(2), 200},      // the guards of known resources still work
		{"a", tok(1<<63 - 1), 200},
	} {
		r := httptest.NewRequest("GET", "/?name="+c.name, nil)
		r.Header.Set("Fencing-Token", string(c.token))
		if resp := serve(h, r); resp.StatusCode != c.status {
			t.Errorf("%q, %s: %s, want %d", c.name, c.token, resp.Status, c.status)
		}
	}
	if got, want := fmt.Sprint(guards.Marks()), fmt.Sprint(map[string]lease.Token{"a": tok(1<<63 - 1), "b": tok(2)}); got != want {
		t.Errorf("marks %v, want %v", got, want)
	}
}

// SPEC G1: a request without a guard is refused, and the client does not see why.
func TestHandlerRefusesWithoutAGuard(t *testing.T) {
	for _, err := range []error{nil, errors.New("password is swordfish")} {
		h := newHandler(t, func(http.ResponseWriter, *http.Request) { t.Error("called") }, &fencing.Options{
			Guard: func(*http.Request) (*fencing.Guard, error) { return nil, err },
		})
		resp := send(h, "Fencing-Token", string(tok(1)))
		if got := text(t, resp); resp.StatusCode != 500 || got != "Internal Server Error" {
			t.Errorf("%v: %s: %q", err, resp.Status, got)
		}
	}
}

// If next panics, the panic continues, the guard is released, and the mark stays raised.
func TestHandlerPanics(t *testing.T) {
	ends := http.ErrAbortHandler
	h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			panic(ends)
		}
	}, nil)
	func() {
		defer func() {
			if p := recover(); p != ends {
				t.Errorf("recovered %v, want %v", p, ends)
			}
		}()
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Fencing-Token", string(tok(2)))
		serve(h, r)
	}()
	if resp := send(h, "Fencing-Token", string(tok(2))); resp.StatusCode != 200 {
		t.Errorf("after a panic: %s", resp.Status)
	}
	if resp := send(h, "Fencing-Token", string(tok(1))); resp.StatusCode != 412 {
		t.Errorf("an older one after a panic: %s", resp.Status)
	}
}

func TestHandlerBodies(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}
	for _, c := range []struct {
		name   string
		max    int64
		body   io.Reader
		status int
		says   string
	}{
		{"none", 0, nil, 200, "0 <nil>"},
		{"default limit", 0, strings.NewReader(strings.Repeat("x", 1<<20)), 200, "1048576 <nil>"},
		{"over the default limit", 0, strings.NewReader(strings.Repeat("x", 1<<20+1)), 413, "fencing: cannot read the body: http: request body too large"},
		{"limit", 3, strings.NewReader("abc"), 200, "3 <nil>"},
		{"over the limit", 3, strings.NewReader("abcd"), 413, "fencing: cannot read the body: http: request body too large"},
		{"breaks off", 3, io.MultiReader(strings.NewReader("ab"), brokenReader{}), 400, "fencing: cannot read the body: broke off"},
		{"not read ahead", -1, strings.NewReader(strings.Repeat("x", 1<<20+1)), 200, "1048577 <nil>"},
		{"not read ahead, breaks off", -1, io.MultiReader(strings.NewReader("ab"), brokenReader{}), 200, "2 broke off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g fencing.Guard
			h := newHandler(t, read, &fencing.Options{MaxBody: c.max, Guard: func(*http.Request) (*fencing.Guard, error) { return &g, nil }})
			r := httptest.NewRequest("PUT", "/", c.body)
			if c.body == nil {
				r.Body = nil // a caller in the same process may leave the body nil
			}
			before := r.Body
			r.Header.Set("Fencing-Token", string(tok(1)))
			if c.body == nil {
				h = newHandler(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, 0, r.Body) }, nil)
			}
			resp := serve(h, r)
			if got := text(t, resp); resp.StatusCode != c.status || got != c.says {
				t.Errorf("%s: %q; want %d: %q", resp.Status, got, c.status, c.says)
			}
			if r.Body != before {
				t.Error("the caller's request was changed")
			}
			if c.status != 200 && g.Seen() != "" {
				t.Errorf("the mark is %q, though nothing was let through", g.Seen())
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broke off") }

// A client that stops in the middle of a body does not make other clients wait. SPEC G7.
func TestStalledBodyDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := ""
		h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			wrote += string(body) + ";"
		}, nil)
		body, pipe := io.Pipe()
		older := httptest.NewRequest("PUT", "/", body)
		older.Header.Set("Fencing-Token", string(tok(1)))
		var wg sync.WaitGroup
		var late *http.Response
		wg.Go(func() { late = serve(h, older) })
		if _, err := pipe.Write([]byte("the older ")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		if resp := send(h, "Fencing-Token", string(tok(2))); resp.StatusCode != 200 || time.Since(start) != 0 {
			t.Errorf("the newer holder: %s after %v", resp.Status, time.Since(start))
		}
		if _, err := pipe.Write([]byte("one")); err != nil {
			t.Fatal(err)
		}
		pipe.Close()
		wg.Wait()
		if late.StatusCode != 412 || wrote != "body;" {
			t.Errorf("the older holder: %s; written: %q", late.Status, wrote)
		}
	})
}

// Requests for one resource run one at a time. A wait ends with the context of the request. SPEC G7.
func TestHandlerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		h := newHandler(t, func(w http.ResponseWriter, r *http.Request) {
			if running++; running > 1 {
				t.Error("two requests at a time")
			}
			time.Sleep(time.Second)
			running--
		}, nil)
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 3 {
			wg.Go(func() {
				if resp := send(h, "Fencing-Token", string(tok(1))); resp.StatusCode != 200 {
					t.Error(resp.Status)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, "PUT", "/", nil)
		r.Header.Set("Fencing-Token", string(tok(1)))
		resp := serve(h, r)
		if got := text(t, resp); resp.StatusCode != 503 || got != context.DeadlineExceeded.Error() {
			t.Errorf("%s: %q", resp.Status, got)
		}
	})
}

// A request passes only with exactly one well-formed token, and only such a token raises the mark. SPEC G4.
func FuzzHeader(f *testing.F) {
	for _, seed := range malformed {
		f.Add(string(seed), "", uint8(1))
	}
	f.Add(string(tok(1)), string(tok(2)), uint8(1))
	f.Add(string(tok(7)), string(tok(7)), uint8(2))
	f.Add(string(tok(8))+"\r\nX: y", "\x00", uint8(1))
	f.Add(" "+string(tok(8)), string(tok(6)), uint8(3))
	f.Fuzz(func(t *testing.T, first, second string, n uint8) {
		values := []string{first, second, first}[:n%4]
		g, err := fencing.NewGuard(tok(7))
		if err != nil {
			t.Fatal(err)
		}
		called := false
		h := newHandler(t, func(http.ResponseWriter, *http.Request) { called = true }, &fencing.Options{
			Guard: func(*http.Request) (*fencing.Guard, error) { return g, nil },
		})
		resp := send(h, "Fencing-Token", values...)
		well := len(values) == 1 && lease.Token(first).Validate() == nil
		want := http.StatusBadRequest
		switch {
		case well && first < string(tok(7)):
			want = http.StatusPreconditionFailed
		case well:
			want = http.StatusOK
		}
		if resp.StatusCode != want || called != (want == http.StatusOK) {
			t.Errorf("%q: %s, called %v; want %d", values, resp.Status, called, want)
		}
		mark := tok(7)
		if called {
			mark = lease.Token(first)
		}
		if g.Seen() != mark {
			t.Errorf("%q: the mark is %q, want %q", values, g.Seen(), mark)
		}
		if body := text(t, resp); len(body) > 1000 {
			t.Errorf("the answer has %d bytes", len(body))
		}
	})
}
