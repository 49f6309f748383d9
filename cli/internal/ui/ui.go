// Package ui serves a page that shows a person who holds which lease, for how much longer, and what has changed. The
// page only looks, unless its Config lets it break leases.
//
// The page needs nothing from elsewhere. Its address has a secret, and no page of another origin can read it or
// act through it. The names and owners that it shows are treated as text of strangers.
package ui

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

//go:embed page.html page.css page.js page.svg
var files embed.FS

// contentTypes are those of all answers, by the ends of their paths. The types of a system can be wrong.
var contentTypes = map[string]string{"": "text/html", ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json"}

// A Config says what a page shows and may do.
type Config struct {
	Lister   lease.Lister    // required
	Breaker  lease.Authority // breaks leases; nil: the page only looks
	Prefix   string          // of the names; empty: all leases
	Store    string          // how the page calls the store; it must not have a password
	Interval time.Duration   // the shortest time between two lists

	// Enough returns the shortest grace of a break, of a lease with this duration, after which a holder in Go with
	// the default options has stopped. It is required.
	Enough func(duration time.Duration) time.Duration
}

// A Page lists the leases while Run runs, and serves what it has seen. It is safe for concurrent use.
type Page struct {
	config Config
	secret string
	mux    *http.ServeMux
	again  chan struct{} // makes Run list at once
	board  board
}

// New returns a Page with a secret of its own.
func New(c Config) *Page {
	p := &Page{config: c, secret: rand.Text(), mux: http.NewServeMux(), again: make(chan struct{}, 1)}
	p.mux.HandleFunc("GET /{file}", p.file)
	p.mux.HandleFunc("GET /{$}", p.file)
	p.mux.HandleFunc("GET /leases.json", p.leases)
	p.mux.HandleFunc("GET /timeline.svg", p.timeline)
	if c.Breaker != nil {
		p.mux.HandleFunc("POST /break.json", p.breakLease)
	}
	return p
}

// Path returns the path of the page, which contains its secret.
func (p *Page) Path() string { return "/" + p.secret + "/" }

const silence = 10 * time.Second // the longest time without an answer of the store

// Read lists the leases once. The page shows its error too.
func (p *Page) Read(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := time.AfterFunc(silence, func() { cancel(fmt.Errorf("no answer within %v", silence)) })
	defer limit.Stop()
	began, leases := time.Now(), map[string]seen{}
	for e, err := range p.config.Lister.List(ctx, p.config.Prefix) {
		limit.Reset(silence)
		if err != nil && e.Name == "" {
			err = cmp.Or(context.Cause(ctx), err)
			p.board.fail(err)
			return err
		}
		leases[e.Name] = look(e, err, time.Since(began), p.config.Enough)
	}
	p.board.update(began, time.Now(), leases)
	return nil
}

// Run lists the leases again and again until ctx is done.
func (p *Page) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.again:
		case <-time.After(p.board.pause(p.config.Interval)):
		}
		_ = p.Read(ctx)
	}
}

// A status is the answer to a request for the leases. It has the List only if the page does not have it yet.
type status struct {
	Version       int     // of the list
	Age           float64 // seconds since the list began
	Fresh         float64 // the age in seconds from which the list is stale
	Error         string  // of the last list; empty if it was complete
	Store, Prefix string
	Break         bool
	List          json.RawMessage `json:",omitempty"`
}

func (p *Page) leases(w http.ResponseWriter, r *http.Request) {
	s := status{Store: p.config.Store, Prefix: p.config.Prefix, Break: p.config.Breaker != nil}
	p.board.status(&s, p.config.Interval)
	if fmt.Sprint(s.Version) == r.FormValue("have") {
		s.List = nil
	}
	_, _ = w.Write(encode(s))
}

func (p *Page) timeline(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write(p.board.draw(p.config.Prefix, r.FormValue("name"), r.FormValue("filter")))
}

func (p *Page) file(w http.ResponseWriter, r *http.Request) {
	text, err := files.ReadFile(cmp.Or(r.PathValue("file"), "page.html"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(text)
}

// breakLease breaks a lease, if the holder is still the one that the person has seen, and answers with a text.
func (p *Page) breakLease(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*silence)
	defer cancel()
	code, text := p.breaks(ctx, json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)))
	w.WriteHeader(code)
	_, _ = w.Write(encode(text))
}

func (p *Page) breaks(ctx context.Context, body *json.Decoder) (code int, text string) {
	var ask struct {
		Name  string
		Token lease.Token
		Grace float64 // in seconds
	}
	if err := body.Decode(&ask); err != nil || ask.Grace < 0 || ask.Grace > 1e6 || !strings.HasPrefix(ask.Name, p.config.Prefix) {
		return http.StatusBadRequest, "Not broken: the request is malformed."
	}
	res, err := lease.Inspect(ctx, p.config.Breaker, ask.Name)
	switch {
	case err != nil:
		return http.StatusBadGateway, "Not broken: the store does not say who holds the lease: " + oneLine(err)
	case !res.Record.State.Locked():
		return http.StatusConflict, "Not broken: nobody holds the lease any more."
	case res.Record.Token() != ask.Token:
		return http.StatusConflict, "Not broken: the lease has changed hands. It is now held by " + res.Record.Owner + "."
	}
	left, err := lease.Break(ctx, p.config.Breaker, ask.Name, lease.Grace(time.Duration(ask.Grace*float64(time.Second))))
	select {
	case p.again <- struct{}{}:
	default:
	}
	switch {
	case err == nil:
		return http.StatusOK, fmt.Sprintf("Broken. The lease is free in at most %v.", left.Round(100*time.Millisecond))
	case lease.CodeOf(err).Refusal() || errors.As(err, new(*lease.FieldError)):
		return http.StatusConflict, "Not broken: " + oneLine(err)
	}
	return http.StatusBadGateway, "It is not known whether the lease is broken: look at the list. " + oneLine(err)
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // nothing that cannot be encoded is passed
	}
	return text
}
