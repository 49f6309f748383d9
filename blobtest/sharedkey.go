package blobtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
)

// admitSharedKey verifies the header Authorization, whose form is "SharedKey account:signature" or
// "SharedKeyLite account:signature". It ignores the age of the request, because the client has another clock.
func (c *call) admitSharedKey() error {
	scheme, rest, ok := strings.Cut(c.header("Authorization"), " ")
	name, sig, signed := strings.Cut(strings.TrimSpace(rest), ":")
	if !ok || !signed || scheme != "SharedKey" && scheme != "SharedKeyLite" {
		return errAuthHeader
	}
	if name != c.account.name {
		return unauthenticated("The account " + name + " is not the account of the resource.")
	}
	date := c.header(headerDate)
	if date == "" {
		date = c.header("Date")
	}
	if _, err := http.ParseTime(date); err != nil {
		return unauthenticated("Neither x-ms-date nor Date has a date in the format of RFC 1123.")
	}
	lite := scheme == "SharedKeyLite"
	text := c.sharedKeyText(lite, cultural)
	if !verify(c.account.key, text, sig) && !verify(c.account.key, c.sharedKeyText(lite, ordinal), sig) {
		return unauthenticated("The MAC signature found in the HTTP request '" + sig + "' is not the same as any computed signature. Server used following string to sign: '" + text + "'.")
	}
	c.access = access{all: true}
	return nil
}

// verify compares signatures in constant time, so that a client cannot guess a signature byte by byte.
func verify(key []byte, text, sig string) bool {
	got, err := base64.StdEncoding.DecodeString(sig)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return hmac.Equal(got, mac.Sum(nil)) && err == nil
}

// sharedKeyText returns the string that a client signs with the key of the account.
func (c *call) sharedKeyText(lite bool, order func(a, b string) int) string {
	date := c.header("Date")
	if c.header(headerDate) != "" {
		date = "" // the header x-ms-date is already among the canonicalized headers
	}
	lines := []string{c.r.Method}
	if lite {
		lines = append(lines, c.header("Content-MD5"), c.header("Content-Type"), date)
	} else {
		lines = append(lines,
			c.header("Content-Encoding"), c.header("Content-Language"), c.signedLength(),
			c.header("Content-MD5"), c.header("Content-Type"), date,
			c.header("If-Modified-Since"), c.header("If-Match"), c.header("If-None-Match"),
			c.header("If-Unmodified-Since"), c.header("Range"))
	}
	return strings.Join(lines, "\n") + "\n" + c.canonicalHeaders(order) + c.canonicalResource(lite)
}

// signedLength returns the Content-Length as signed: since version 2015-02-21, the length 0 is signed as "".
func (c *call) signedLength() string {
	n := c.header("Content-Length")
	if n == "0" && c.version >= versionZeroLength {
		return ""
	}
	return n
}

// Clients sort header names in one of two orders, which differ only for the names of metadata. The ordinal
// order compares bytes. The cultural order ignores dashes and puts an underscore before digits, as Windows
// does.
var (
	ordinal  = strings.Compare
	cultural = func(a, b string) int { return strings.Compare(words.Replace(a), words.Replace(b)) }
	words    = strings.NewReplacer("-", "", "_", " ")
)

// canonicalHeaders returns the headers x-ms-*, each on a line of its own, sorted by name. "Prior to service
// version 2016-05-31, headers with empty values were omitted from the signature string."
func (c *call) canonicalHeaders(order func(a, b string) int) string {
	var names []string
	values := map[string]string{}
	for name, vs := range c.r.Header {
		value := strings.TrimSpace(strings.Join(vs, ","))
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") && (value != "" || c.version >= versionEmptyHeaders) {
			names = append(names, name)
			values[name] = value
		}
	}
	slices.SortFunc(names, order)
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return b.String()
}

// canonicalResource returns the part of the signed string that names the resource: the account, the path as
// the client sent it, and the query parameters. For Shared Key Lite, the only parameter is comp.
func (c *call) canonicalResource(lite bool) string {
	path, _, _ := strings.Cut(c.r.RequestURI, "?")
	if i := strings.Index(path, "://"); i >= 0 { // absolute form
		path = path[i+3:]
		if i = strings.IndexByte(path, '/'); i < 0 {
			i = len(path)
		}
		path = path[i:]
	}
	if c.r.RequestURI == "" {
		path = c.r.URL.EscapedPath()
	}
	s := "/" + c.account.name + path
	if lite {
		if comp := c.query.Get("comp"); comp != "" {
			s += "?comp=" + comp
		}
		return s
	}
	var names []string
	for name := range c.query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Clone(c.query[name])
		slices.Sort(values)
		s += "\n" + name + ":" + strings.Join(values, ",")
	}
	return s
}
