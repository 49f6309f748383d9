package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/member"
	"github.com/fencedlease/lease/open"
)

// The function serve is the command "lease ui". It prints the address of the page, and answers requests for
// the page until a signal arrives.
func serve(ctx context.Context, c *call) error {
	switch {
	case len(c.args) > 1 || c.rest != nil:
		return fail(exitUsage, "ui: want at most one PREFIX; see lease -h")
	case c.port < 0 || c.port > 65535:
		return fail(exitUsage, "-port is %d: it must be a port or 0, which is any free one", c.port)
	}
	store, err := c.openExisting(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	p := newPage(c, store)
	if err := p.read(ctx); err != nil {
		return c.unreachable(err)
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", c.port))
	if err != nil {
		return fail(1, "ui: %v", err)
	}
	go p.run(ctx)
	fmt.Printf("http://%v%s\n", l.Addr(), p.path())
	server := &http.Server{Handler: p, ReadHeaderTimeout: silence, ErrorLog: log.New(io.Discard, "", 0)}
	return fail(1, "ui: %v", server.Serve(l))
}

//go:embed ui
var embedded embed.FS
var files, _ = fs.Sub(embedded, "ui")

// The variable contentTypes maps the extension of a path to the content type of the answer. The content types
// of the operating system are not used, because they can be wrong.
var contentTypes = map[string]string{"": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".json": "application/json"}

// A page is a web page about leases. The page shows the holder and the remaining time of each lease, and the
// latest changes. While the method p.run is running, the page lists the leases again and again. Names and
// owners can be any text, so the page must not trust them.
type page struct {
	*call
	prefix string
	store  open.Leases
	secret string // part of the page's address: see ServeHTTP
	mux    *http.ServeMux
	again  chan struct{} // makes run list the leases at once
	board  board
}

func newPage(c *call, store open.Leases) *page {
	p := &page{call: c, prefix: strings.Join(c.args, ""), store: store, secret: rand.Text(), mux: http.NewServeMux(), again: make(chan struct{}, 1)}
	p.mux.Handle("GET /", http.FileServerFS(files))
	p.mux.HandleFunc("GET /leases.json", p.leasesJSON)
	p.mux.HandleFunc("GET /timeline.svg", p.timeline)
	if c.breaks {
		p.mux.HandleFunc("POST /break.json", p.breakLease)
	}
	return p
}

func (p *page) path() string { return "/" + p.secret + "/" }

func (p *page) read(ctx context.Context) error {
	began, leases := time.Now(), map[string]sight{}
	for w, err := range rows(ctx, p.store, p.prefix) {
		if err != nil {
			p.board.fail(err)
			return err
		}
		s := sight{row: w, After: time.Since(began).Seconds(), Enough: enoughGrace(w.duration).Seconds()}
		s.Process, s.Role = member.Process(w.Name, w.Owner)
		leases[w.Name] = s
	}
	p.board.update(began, time.Now(), leases)
	return nil
}

func (p *page) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.again:
		case <-time.After(p.board.pause(p.interval)):
		}
		_ = p.read(ctx) // the page shows the error
	}
}

// leasesJSON sends the leases to the page. It omits the list if the page already has this version.
func (p *page) leasesJSON(w http.ResponseWriter, r *http.Request) {
	a := p.board.answer(p.interval)
	a["prefix"], a["break"] = p.prefix, p.breaks
	a["store"], _, _ = strings.Cut(p.call.store, ":")
	if fmt.Sprint(a["version"]) == r.FormValue("have") {
		delete(a, "list")
	}
	_ = json.NewEncoder(w).Encode(a)
}

func (p *page) timeline(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write(p.board.draw(p.prefix, r.FormValue("name"), r.FormValue("filter")))
}

// The method p.breakLease breaks a lease, but only if the lease still has the holder that the page showed.
// The answer is a text that says whether the lease was broken.
func (p *page) breakLease(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*silence)
	defer cancel()
	code, text := p.tryBreak(ctx, json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)))
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(text)
}

func (p *page) tryBreak(ctx context.Context, body *json.Decoder) (code int, text string) {
	var ask struct {
		Name  string
		Token lease.Token
		Grace float64 // in seconds
	}
	if err := body.Decode(&ask); err != nil || ask.Grace < 0 || ask.Grace > 1e6 || !strings.HasPrefix(ask.Name, p.prefix) {
		return http.StatusBadRequest, "Not broken: the request is malformed."
	}
	res, err := lease.Inspect(ctx, p.store.Authority(), ask.Name)
	switch {
	case err != nil:
		return http.StatusBadGateway, "Not broken: the store does not say who holds the lease: " + oneLine(err)
	case !res.Record.State.Locked():
		return http.StatusConflict, "Not broken: nobody holds the lease any more."
	case res.Record.Token() != ask.Token:
		return http.StatusConflict, "Not broken: the lease has changed hands. It is now held by " + res.Record.Owner + "."
	}
	left, err := lease.Break(ctx, p.store.Authority(), ask.Name, lease.Grace(time.Duration(ask.Grace*float64(time.Second))))
	select {
	case p.again <- struct{}{}:
	default:
	}
	switch {
	case err == nil:
		return http.StatusOK, "Broken. The lease is free in at most " + remaining(left) + "."
	case lease.CodeOf(err).Refusal() || errors.As(err, new(*lease.FieldError)):
		return http.StatusConflict, "Not broken: " + oneLine(err)
	}
	return http.StatusBadGateway, "It is not known whether the lease is broken: look at the list. " + oneLine(err)
}

// The variable uiHeaders contains the headers of every answer. The Content-Security-Policy forbids inline
// scripts, inline styles and forms. It also prevents other pages from showing this page in a frame.
var uiHeaders = map[string]string{
	"Content-Security-Policy":      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer", // because the address contains the secret
	"Cache-Control":                "no-store",
}

// ServeHTTP serves the page below a path that contains the secret. It rejects requests that come from other
// pages.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range uiHeaders {
		w.Header().Set(name, value)
	}
	if refused := stranger(r); refused != "" {
		http.Error(w, refused, http.StatusForbidden)
		return
	}
	secret, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !found || subtle.ConstantTimeCompare([]byte(secret), []byte(p.secret)) != 1 {
		http.Error(w, "There is nothing here. lease ui prints the address of its page when it starts.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", contentTypes[path.Ext(r.URL.Path)]+"; charset=utf-8")
	http.StripPrefix("/"+secret, p.mux).ServeHTTP(w, r)
}

// If a request must be rejected, stranger returns the reason, and otherwise "". It rejects requests that come
// from a page of another origin. It also rejects every host except localhost and the loopback addresses,
// because an attacker can make any other host name point to this machine (DNS rebinding).
func stranger(r *http.Request) (refused string) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return "This page answers only at localhost and 127.0.0.1. From another machine, use ssh -L."
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	mayOmit := r.Method == http.MethodGet || r.Method == http.MethodHead
	if origin != "http://"+r.Host && !(origin == "" && mayOmit) || site != "" && site != "same-origin" && site != "none" {
		return "This request comes from another page. Paste the address into the browser instead of following a link."
	}
	return ""
}
