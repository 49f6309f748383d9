package blobtest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fencedlease/lease"
)

type page struct {
	prefix, delimiter string
	marker            position // where the page begins
	include           []string
	max               int
}

// A position identifies an item of a list by its name. A snapshot also has a time, and comes before its blob.
type position struct{ name, snapshot string }

func (p position) compare(q position) int {
	if n := cmp.Compare(p.name, q.name); n != 0 {
		return n
	}
	return cmp.Compare(cmp.Or(p.snapshot, "~"), cmp.Or(q.snapshot, "~"))
}

const maxResults = 5000

// includeValues lists the values that the query parameter "include" can contain.
var includeValues = []string{
	"snapshots", "metadata", "uncommittedblobs", "copy", "system",
	// The server has no data for the following values, and ignores them.
	"deleted", "tags", "versions", "deletedwithversions", "immutabilitypolicy", "legalhold", "permissions",
}

func (c *call) parsePage() (p page, err error) {
	q := c.query
	p = page{prefix: q.Get("prefix"), delimiter: q.Get("delimiter"), max: maxResults}
	if s := q.Get("include"); s != "" {
		p.include = strings.Split(strings.ToLower(s), ",")
		if slices.ContainsFunc(p.include, func(what string) bool { return !slices.Contains(includeValues, what) }) {
			return p, badQuery(errInvalidQuery, "include", s, "It must name what a list can include.")
		}
	}
	if s := q.Get("maxresults"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return p, badQuery(errInvalidQuery, "maxresults", s, "It must be a number.")
		}
		if n < 1 {
			return p, badQuery(errOutOfRangeQuery, "maxresults", s, "It must be at least 1.")
		}
		p.max = min(n, maxResults)
	}
	if s := q.Get("marker"); s != "" {
		raw, err := base64.RawURLEncoding.DecodeString(s)
		name, snapshot, ok := strings.Cut(string(raw), "\n")
		if err != nil || !ok {
			return p, badQuery(errInvalidQuery, "marker", s, "It must come from an earlier list.")
		}
		p.marker = position{name, snapshot}
	}
	return p, nil
}

func (p position) marker() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.name + "\n" + p.snapshot))
}

// The method endpoint returns the URL of the account. If the host of the request contains the name of the
// account, this URL contains the name in its host. Otherwise the URL contains the name of the account in its
// path.
func (c *call) endpoint() string {
	scheme, path := "http", "/"
	if c.secure() {
		scheme = "https"
	}
	if !c.hosted {
		path += c.account.name + "/"
	}
	return scheme + "://" + c.r.Host + path
}

// startList begins the document of a list, which repeats those parameters that the request contains.
func (c *call) startList(p page) *bytes.Buffer {
	b := startXML()
	b.WriteString(`<EnumerationResults ServiceEndpoint="`)
	writeText(b, c.endpoint())
	if c.kind == kindContainer {
		b.WriteString(`" ContainerName="`)
		writeText(b, c.container)
	}
	b.WriteString(`">`)
	if p.prefix != "" {
		element(b, "Prefix", p.prefix)
	}
	if marker := c.query.Get("marker"); marker != "" {
		element(b, "Marker", marker)
	}
	if c.query.Get("maxresults") != "" {
		element(b, "MaxResults", strconv.Itoa(p.max))
	}
	return b
}

func endList(b *bytes.Buffer, next *position) *reply {
	marker := ""
	if next != nil {
		marker = next.marker()
	}
	element(b, "NextMarker", marker)
	b.WriteString("</EnumerationResults>")
	rep := newReply(http.StatusOK)
	rep.header.Set("Content-Type", "application/xml")
	rep.body = segments{b.Bytes()}
	return rep
}

func (c *call) writeLease(b *bytes.Buffer, r lease.Record) {
	status, state, duration := leaseWords(r)
	element(b, "LeaseStatus", status)
	if c.version >= lease.Version20120212 {
		element(b, "LeaseState", state)
		if duration != "" {
			element(b, "LeaseDuration", duration)
		}
	}
}

func writeMetadata(b *bytes.Buffer, p page, m metadata) {
	if !slices.Contains(p.include, "metadata") {
		return
	}
	b.WriteString("<Metadata>")
	for _, v := range m {
		element(b, v[0], v[1])
	}
	b.WriteString("</Metadata>")
}

// writeName writes a name. If XML does not allow a character of the name, the name is percent-encoded.
func writeName(b *bytes.Buffer, name string) {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF
	}) {
		b.WriteString(`<Name Encoded="true">` + url.PathEscape(name) + "</Name>")
		return
	}
	element(b, "Name", name)
}
