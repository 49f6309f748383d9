package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/open"
)

// A world is a page of a store that can go away, be slow, or have a record that cannot be read.
type world struct {
	t *testing.T
	open.Leases
	memory       lease.Authority
	gone, spoilt atomic.Bool
	slow         time.Duration
	*page
}

func newWorld(t *testing.T, breaks bool) *world {
	w := &world{t: t, memory: memory.New(nil).Authority()}
	w.page = newPage(&call{store: "memory:", args: []string{"x/"}, interval: time.Second, breaks: breaks}, w)
	return w
}

func (w *world) Authority() lease.Authority { return w }

var errGone = errors.New("connection\n<b>refused</b>")

func (w *world) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if w.gone.Load() {
		return lease.Result{}, errGone
	}
	return w.memory.Do(ctx, name, req)
}

func (w *world) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		select {
		case <-time.After(w.slow):
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil || w.gone.Load() {
			yield(lease.Entry{}, cmp.Or(err, errGone))
		} else if !w.spoilt.Load() || yield(lease.Entry{Name: "x/spoilt"}, errors.New("no record")) {
			w.memory.(lease.Lister).List(ctx, prefix)(yield)
		}
	}
}

var id = vectors.MustParseID("11111111-2222-3333-4444-555555555555")

// hold takes a lease, and returns its token.
func (w *world) hold(name, owner string, d time.Duration) lease.Token {
	req := shorthand.Acquire(id, d)
	req.Owner = owner
	return w.do(name, req).Token()
}

func (w *world) do(name string, req lease.Request) lease.Record {
	w.t.Helper()
	return shorthand.Do(w.t, w.memory, name, req, 0).Record
}

func (w *world) is(name string, want lease.State) {
	w.t.Helper()
	if state := w.do(name, lease.Request{Action: lease.ActionRead}).State; state != want {
		w.t.Errorf("the lease is %v, want %v", state, want)
	}
}

// ask sends a request as the page does, unless change makes it another one.
func (w *world) ask(path, body string, change func(*http.Request)) (code int, answer string, header http.Header) {
	r := httptest.NewRequest("GET", "http://127.0.0.1:8099"+w.path()+path, nil)
	if body != "" {
		r = httptest.NewRequest("POST", r.URL.String(), strings.NewReader(body))
		r.Header.Set("Origin", "http://127.0.0.1:8099")
	}
	if change != nil {
		change(r)
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String(), rec.Header()
}

// The page says what happens to leases. While the store is gone, it says how old its data are.
func TestNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		w.hold("x/old", "zoe", lease.Infinite)
		w.hold("y", "zoe", lease.Infinite)
		_ = w.read(t.Context())
		last, many := "", 0
		for _, step := range []struct {
			do   func()
			want string // empty: no news
		}{
			{func() {}, ""},
			{func() { w.hold("x/1", "alice", time.Minute) }, "x/1 was taken by alice (token 1)"},
			{func() { time.Sleep(2 * time.Second); w.do("x/1", shorthand.Renew(id)) }, ""},
			{func() { w.do("x/1", shorthand.Release(id)) }, "x/1 is free; alice had it"},
			{func() { w.spoilt.Store(true) }, "x/spoilt cannot be read: no record"},
			{func() { w.gone.Store(true); time.Sleep(time.Minute) }, ""},
			{func() { w.gone.Store(false) }, " The store could not be read."},
			{func() { w.spoilt.Store(false) }, "x/spoilt is available"},
		} {
			step.do()
			err, gone := w.read(t.Context()), w.gone.Load()
			if step.want != "" {
				last, many = step.want, many+1
			}
			var got struct {
				Version int
				Error   string
				List    struct{ News []news }
			}
			_, body, _ := w.ask("leases.json", "", nil)
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err, body)
			}
			said := ""
			if len(got.List.News) > 0 {
				said = got.List.News[0].Name + " " + got.List.News[0].Text
			}
			if said != last || len(got.List.News) != many || (err != nil) != gone || (got.Error == "connection <b>refused</b>") != gone || strings.Contains(body, `"y"`) {
				t.Errorf("want %q, %v: %s", last, err, body)
			}
			if _, again, _ := w.ask(fmt.Sprint("leases.json?have=", got.Version), "", nil); strings.Contains(again, "leases") {
				t.Errorf("the list is sent again: %s", again)
			}
		}
	})
}

// A drawing has the leases that changed last, and nothing for the time in which the store could not be read.
func TestDrawing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, false)
		count := func(query, part string, want int) {
			t.Helper()
			if _, svg, _ := w.ask("timeline.svg?"+query, "", nil); strings.Count(svg, part) != want {
				t.Errorf("%s has %d of %q, want %d", query, strings.Count(svg, part), part, want)
			}
		}
		const lane, leased, gap = `<text font-weight="bold" x="8"`, `<rect class="leased `, "the store could not be read"
		for i := range mostLanes + 5 {
			w.hold(fmt.Sprint("x/", i), fmt.Sprint("holder<", i), time.Hour)
			time.Sleep(time.Second)
			_ = w.read(t.Context())
		}
		for _, gone := range []bool{true, true, false, false} {
			w.gone.Store(gone)
			time.Sleep(20 * time.Second)
			_ = w.read(t.Context())
			time.Sleep(time.Second)
			count("name=x/7", gap, 1)
			count("name=x/7", leased, map[bool]int{true: 3, false: 5}[gone]) // of the lease, of its holder, and in the legend
		}
		count("", "(the 40 that changed last, of 45)", 2)
		count("", lane, mostLanes)
		count("", ">x/44<", 1)
		count("filter=LDER%3C7", lane, 1)
		for i := range mostNews {
			w.hold("x/7", fmt.Sprint(i), time.Hour)
			_ = w.read(t.Context())
		}
		if n, m := len(w.board.history["x/7"]), len(w.board.news); n != mostOfOne || m != mostNews {
			t.Errorf("%d changes of one lease and %d of all are remembered", n, m)
		}
	})
}

// run lists at every interval, and for at most a fifth of the time. A store that says nothing for 10s has failed.
func TestRun(t *testing.T) {
	for slow, want := range map[time.Duration]string{0: "age:0.5 error: fresh:3 version:45", time.Second: "age:3.5 error: fresh:11 version:10", 11 * time.Second: "age:44.5 error:no answer within 10s fresh:3 version:1"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, false)
			_ = w.read(t.Context())
			w.slow = slow
			ctx, cancel := context.WithTimeout(t.Context(), 44500*time.Millisecond)
			defer cancel()
			w.run(ctx)
			got := w.board.answer(w.interval)
			delete(got, "list")
			if fmt.Sprint(got) != "map["+want+"]" {
				t.Errorf("if a list takes %v: %v, want %s", slow, got, want)
			}
		})
	}
}

// A break needs the token that the person has seen, and a lease that is held.
func TestBreak(t *testing.T) {
	w := newWorld(t, true)
	tok := w.hold("x/1", "<alice>", time.Minute)
	w.hold("y", "bob", time.Minute)
	for _, c := range []struct {
		name, token, grace, want string
		code                     int
	}{
		{"x/1", "", "-1", "malformed", 400},
		{"y", "", "5", "malformed", 400}, // not below the prefix
		{"x/1", "0", "5", `has changed hands. It is now held by \u003calice\u003e.`, 409},
		{"x/none", "", "5", "nobody holds", 409},
		{"x/1", "", "5", "free in at most 5s", 200},
	} {
		body := fmt.Sprintf(`{"name":%q,"token":"%s","grace":%s}`, c.name, string(tok)+c.token, c.grace)
		if code, answer, _ := w.ask("break.json", body, nil); code != c.code || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
	w.is("x/1", lease.Breaking)
	if len(w.again) != 1 {
		t.Error("the leases are not read again at once")
	}
	w.gone.Store(true)
	if code, answer, _ := w.ask("break.json", `{"name":"x/1"}`, nil); code != 502 || !strings.Contains(answer, "refused") {
		t.Errorf("without a store: %d %s", code, answer)
	}
	if code, answer, _ := newWorld(t, false).ask("break.json", "{}", nil); code != 404 && code != 405 {
		t.Errorf("a page that only looks: %d %s", code, answer)
	}
}

// Only a person and the page itself get an answer, and every answer has the headers that keep others out.
func TestStrangers(t *testing.T) {
	w := newWorld(t, true)
	tok := w.hold("x/1", "alice", time.Minute)
	bodies := map[string]string{"": "", "page.js": "", "page.css": "", "page.svg": "", "leases.json": "", "timeline.svg": "",
		"break.json": fmt.Sprintf(`{"name":"x/1","token":%q,"grace":60}`, tok)}
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(host string) func(*http.Request) {
		return func(r *http.Request) { r.Host = host; r.Header.Set("Origin", "http://"+host) }
	}
	for what, c := range map[string]struct {
		code   int
		change func(*http.Request)
	}{
		"another secret":               {404, func(r *http.Request) { r.URL.Path = "/x" + r.URL.Path[2:] }},
		"a longer secret":              {404, func(r *http.Request) { r.URL.Path = w.path()[:len(w.path())-1] + "x/" + r.URL.Path[len(w.path()):] }},
		"a shorter secret":             {404, func(r *http.Request) { r.URL.Path = w.path()[:len(w.path())-2] + "/" + r.URL.Path[len(w.path()):] }},
		"no secret":                    {404, func(r *http.Request) { r.URL.Path = r.URL.Path[len(w.path())-1:] }},
		"a name that points here":      {403, host("evil.example:8099")},
		"a name that begins like ours": {403, host("localhost.evil.example")},
		"another address":              {403, host("192.0.2.1:8099")},
		"no host":                      {403, host("")},
		"another port":                 {403, set("Origin", "http://127.0.0.1:9")},
		"https":                        {403, set("Origin", "https://127.0.0.1:8099")},
		"a sandbox":                    {403, set("Origin", "null")},
		"a link elsewhere":             {403, set("Sec-Fetch-Site", "cross-site")},
		"a page of another port":       {403, set("Sec-Fetch-Site", "same-site")},
		"the page":                     {200, set("Sec-Fetch-Site", "same-origin")},
		"a person":                     {200, set("Sec-Fetch-Site", "none")},
		"a tunnel":                     {200, host("localhost:1234")},
		"IPv6":                         {200, host("[::1]:1234")},
	} {
		for path, body := range bodies {
			code, _, h := w.ask(path, body, c.change)
			if code != c.code {
				t.Errorf("%s: %s is %d", what, path, code)
			}
			for name, value := range map[string]string{
				"Content-Security-Policy":    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			} {
				if h.Get(name) != value {
					t.Errorf("%s: %s has %s %q", what, path, name, h.Get(name))
				}
			}
		}
	}
	for what, change := range map[string]func(*http.Request){
		"without an origin": func(r *http.Request) { r.Header.Del("Origin") },
		"by GET":            func(r *http.Request) { r.Method = "GET" },
	} {
		if code, answer, _ := w.ask("break.json", bodies["break.json"], change); code == 200 {
			t.Errorf("a break %s: %s", what, answer)
		}
	}
}
