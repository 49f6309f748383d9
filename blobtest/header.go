package blobtest

import (
	"net/http"
	"strings"
)

const (
	headerAction    = "x-ms-lease-action"
	headerID        = "x-ms-lease-id"
	headerProposed  = "x-ms-proposed-lease-id"
	headerDuration  = "x-ms-lease-duration"
	headerPeriod    = "x-ms-lease-break-period"
	headerLeft      = "x-ms-lease-time"
	headerVersion   = "x-ms-version"
	headerRequest   = "x-ms-request-id"
	headerClient    = "x-ms-client-request-id"
	headerErrorCode = "x-ms-error-code"
	headerOwner     = "User-Agent"
	headerDate      = "x-ms-date"
	headerTier      = "x-ms-access-tier"
	headerPublic    = "x-ms-blob-public-access"
)

// canonicalNames maps the names of headers to their keys in an [http.Header]. Without this map, every request
// would compute about thirty keys, each of which allocates memory.
var canonicalNames = func() map[string]string {
	m := map[string]string{}
	for _, name := range []string{
		headerAction, headerID, headerProposed, headerDuration, headerPeriod, headerLeft, headerVersion,
		headerRequest, headerClient, headerErrorCode, headerOwner, headerDate, "ETag",
	} {
		m[name] = http.CanonicalHeaderKey(name)
	}
	return m
}()

func canonicalName(name string) string {
	if key, ok := canonicalNames[name]; ok {
		return key
	}
	return http.CanonicalHeaderKey(name)
}

// headerOf returns the value of a header without surrounding white space. If the header is repeated, its
// values are joined with commas, because clients sign the joined values.
func headerOf(r *http.Request, name string) string {
	switch values := r.Header[canonicalName(name)]; len(values) {
	case 0:
		return ""
	case 1:
		return strings.TrimSpace(values[0])
	default:
		return strings.TrimSpace(strings.Join(values, ","))
	}
}

func (c *call) header(name string) string { return headerOf(c.r, name) }

func setHeader(h http.Header, name, value string) { h[canonicalName(name)] = []string{value} }
