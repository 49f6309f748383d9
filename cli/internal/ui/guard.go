package ui

import (
	"crypto/subtle"
	"net"
	"net/http"
	"path"
	"strings"
)

// headers are those of every answer. The policy allows no inline script or style, no frame around the page, and
// no form that leads elsewhere.
var headers = map[string]string{
	"Content-Security-Policy":      "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer", // the address has the secret
	"Cache-Control":                "no-store",
}

// ServeHTTP serves the page below its secret path, to nobody but itself and a person who enters the address.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
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

// stranger returns why a request is refused, whatever its path: it comes from a page of another origin, or through
// a name that somebody else's DNS points at this machine.
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
