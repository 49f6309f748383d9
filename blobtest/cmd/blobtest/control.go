package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

// The control endpoints. Neither is a path of the protocol, because no account's name begins with an
// underscore.
const (
	clockPath = "/_clock"
	resetPath = "/_reset"
)

// A control serves the control endpoints, and passes every other request on to the double. It asks
// for no signature, but refuses what a page in a browser could send.
type control struct {
	double  *blobtest.Handler
	trusted func(host string) bool
}

func (c control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// A http.ServeMux would clean the paths of blobs.
	path := r.URL.Path
	switch {
	case path != clockPath && path != resetPath:
		c.double.ServeHTTP(w, r)
	case r.Header.Get("Origin") != "":
		http.Error(w, path+" refuses requests with the header Origin, which browsers send for a page", http.StatusForbidden)
	case !c.trusted(r.Host):
		// A page can have its own name resolve to this machine, and is then of the same origin.
		http.Error(w, path+" refuses the Host "+r.Host+": use an IP address, localhost or the host of -addr", http.StatusForbidden)
	case path == clockPath:
		serveClock(c.double.Clock(), w, r)
	default:
		serveReset(c.double, w, r)
	}
}

// serveClock shows and moves the clock. GET answers {"now":"..."}. POST with the parameter advance,
// a duration such as 15s or 1m, moves the clock forward first. If that is beyond the end of the clock,
// POST moves it to its end and answers 400.
func serveClock(clock *blobtest.Clock, w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		d, err := time.ParseDuration(r.URL.Query().Get("advance"))
		if err != nil || d < 0 {
			http.Error(w, "advance must be a duration such as 15s, and not negative", http.StatusBadRequest)
			return
		}
		until := clock.Now().Add(d)
		clock.Advance(d)
		if now := clock.Now(); now.Before(until) {
			http.Error(w, "the clock ends at "+now.Format(time.RFC3339), http.StatusBadRequest)
			return
		}
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, clockPath+" serves GET and POST", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone; then there is no one to report an error to.
	_ = json.NewEncoder(w).Encode(struct {
		Now time.Time `json:"now"`
	}{clock.Now()})
}

// serveReset deletes everything but the containers of -container, which it creates again.
func serveReset(double *blobtest.Handler, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, resetPath+" serves POST", http.StatusMethodNotAllowed)
		return
	}
	if err := double.Reset(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// trustedHost returns a function that reports whether the Host of a request is a name of this machine,
// and not that of a page. Names of a machine that others can reach are unknown, so there every Host
// is one.
func trustedHost(addr string, bound net.Addr) func(host string) bool {
	own, _, _ := net.SplitHostPort(addr)
	tcp, ok := bound.(*net.TCPAddr)
	reachable := ok && !tcp.IP.IsLoopback()
	return func(host string) bool {
		name := strings.ToLower(host)
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		return reachable || name == "localhost" || strings.HasSuffix(name, ".localhost") || name == strings.ToLower(own) ||
			net.ParseIP(strings.Trim(name, "[]")) != nil
	}
}
