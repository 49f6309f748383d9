package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

// These are the paths of the control endpoints. They begin with an underscore to differ from all paths of the
// Blob protocol. A path of the Blob protocol begins with the name of an account, and such a name cannot begin
// with an underscore.
const (
	clockPath = "/_clock"
	resetPath = "/_reset"
)

// A control is an [http.Handler] that serves the control endpoints, and passes all other requests on to the
// [blobtest.Handler]. The endpoints need no signature, but refuse requests that a web page could send.
type control struct {
	double  *blobtest.Handler
	trusted func(host string) bool
}

func (c control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// This is not an http.ServeMux, which would clean the paths of blobs.
	path := r.URL.Path
	switch {
	case path != clockPath && path != resetPath:
		c.double.ServeHTTP(w, r)
	case r.Header.Get("Origin") != "":
		http.Error(w, path+" refuses requests with the header Origin, which browsers send for a page", http.StatusForbidden)
	case !c.trusted(r.Host):
		// A malicious web site can make its own host name resolve to this machine. A browser then treats
		// requests to this machine as requests to that site, and can omit the header Origin. ServeHTTP
		// therefore checks the Host as well.
		http.Error(w, path+" refuses the Host "+r.Host+": use an IP address, localhost or the host of -addr", http.StatusForbidden)
	case path == clockPath:
		serveClock(c.double.Clock(), w, r)
	default:
		serveReset(c.double, w, r)
	}
}

// serveClock answers a request with the time of the clock, as {"now":"..."}. A POST request must have a query
// such as advance=15s or advance=1m, and first moves the clock forward by this duration. If the clock cannot
// show the new time, the clock moves to the latest time that it can show, and the answer has the status 400.
func serveClock(clock *leasefault.Clock, w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
	case http.MethodPost:
		d, err := time.ParseDuration(r.URL.Query().Get("advance"))
		if err != nil || d < 0 {
			http.Error(w, "advance must be a duration such as 15s, and not negative", http.StatusBadRequest)
			return
		}
		until := clock.Now().Add(d)
		clock.Step(d)
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
	// Encode fails only if the client is gone, so nobody could be told about the error.
	_ = json.NewEncoder(w).Encode(struct {
		Now time.Time `json:"now"`
	}{clock.Now()})
}

// serveReset deletes all containers and blobs, and creates the containers of -container again.
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

// trustedHost returns a function that checks the header Host of a request. If other machines can reach the
// listener, it accepts every Host, because the command does not know all names of this machine. Otherwise it
// accepts an IP address, localhost, a name that ends in .localhost, and the host of addr. So it rejects a
// malicious web site whose name resolves to this machine.
func trustedHost(addr string, bound net.Addr) func(host string) bool {
	own, _, _ := net.SplitHostPort(addr)
	tcp, ok := bound.(*net.TCPAddr)
	reachable := ok && !tcp.IP.IsLoopback()
	return func(host string) bool {
		name := strings.ToLower(host)
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = h
		}
		isLocal := name == "localhost" || strings.HasSuffix(name, ".localhost")
		isAddress := net.ParseIP(strings.Trim(name, "[]")) != nil
		return reachable || isLocal || isAddress || name == strings.ToLower(own)
	}
}
