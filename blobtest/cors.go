package blobtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A CORSRule allows cross-origin requests, like a CORS rule of the Blob service.
type CORSRule struct {
	Origins        []string      // such as "https://example.org"; "*" matches every origin
	Methods        []string      // such as "PUT"
	AllowedHeaders []string      // of requests; a name can end in *, such as "x-ms-meta-*"
	ExposedHeaders []string      // of responses
	MaxAge         time.Duration // how long a browser may cache the answer to a preflight request, truncated to whole seconds
}

func (u *CORSRule) matches(origin, method string) bool {
	return (slices.Contains(u.Origins, "*") || slices.Contains(u.Origins, origin)) && slices.Contains(u.Methods, method)
}

func (u *CORSRule) allows(header string) bool {
	for _, a := range u.AllowedHeaders {
		prefix, open := strings.CutSuffix(a, "*")
		if strings.EqualFold(a, header) || open && len(header) >= len(prefix) && strings.EqualFold(header[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// addCORS adds headers "if the request includes an Origin header and CORS is enabled with a matching rule".
func (h *Handler) addCORS(header http.Header, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || len(h.o.CORS) == 0 {
		return
	}
	header.Set("Vary", "Origin")
	for i := range h.o.CORS {
		if u := &h.o.CORS[i]; u.matches(origin, r.Method) {
			u.setHeaders(header, origin)
			if len(u.ExposedHeaders) > 0 {
				header.Set("Access-Control-Expose-Headers", strings.Join(u.ExposedHeaders, ","))
			}
			return
		}
	}
}

// setHeaders sets two headers of the answer. The header Access-Control-Allow-Origin "returns the value of the
// origin request header in case of a match". The header Access-Control-Allow-Credentials "will be set to
// true" if the rule "does not allow all origins".
func (u *CORSRule) setHeaders(header http.Header, origin string) {
	if slices.Contains(u.Origins, "*") {
		header.Set("Access-Control-Allow-Origin", "*")
		return
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true")
}

var errCORS = &failure{status: 403, code: "CorsPreflightFailure", text: "CORS not enabled or no matching rule found for this request."}

// The method preflight answers the OPTIONS request that a browser sends before a cross-origin request. This
// OPTIONS request needs no authorization.
func (c *call) preflight() (*reply, error) {
	origin, method := c.header("Origin"), c.header("Access-Control-Request-Method")
	if origin == "" {
		return nil, noHeader("Origin")
	}
	if method == "" {
		return nil, noHeader("Access-Control-Request-Method")
	}
	var headers []string
	for _, name := range strings.Split(c.header("Access-Control-Request-Headers"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			headers = append(headers, name)
		}
	}
	for i := range c.o.CORS {
		u := &c.o.CORS[i]
		if !u.matches(origin, method) || slices.ContainsFunc(headers, func(h string) bool { return !u.allows(h) }) {
			continue
		}
		rep := newReply(http.StatusOK)
		u.setHeaders(rep.header, origin)
		rep.header.Set("Access-Control-Allow-Methods", method)
		if len(headers) > 0 {
			rep.header.Set("Access-Control-Allow-Headers", strings.Join(headers, ","))
		}
		rep.header.Set("Access-Control-Max-Age", strconv.FormatInt(int64(u.MaxAge/time.Second), 10))
		return rep, nil
	}
	return nil, errCORS
}
