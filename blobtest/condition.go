package blobtest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// conditions are the conditional headers of a request, or those of a copy's source.
type conditions struct {
	match, noneMatch               []string // entity tags without quotes, or *; nil: no such header
	modifiedSince, unmodifiedSince time.Time
}

// parseConditions reads the four headers, whose names begin with prefix.
func (c *call) parseConditions(prefix string) (conditions, error) {
	h := c.r.Header
	cond := conditions{
		match:     parseETags(h.Values(prefix + "If-Match")),
		noneMatch: parseETags(h.Values(prefix + "If-None-Match")),
	}
	var err error
	if cond.modifiedSince, err = c.parseTime(prefix + "If-Modified-Since"); err != nil {
		return cond, err
	}
	if cond.unmodifiedSince, err = c.parseTime(prefix + "If-Unmodified-Since"); err != nil {
		return cond, err
	}
	if c.version < versionStrictLease && !cond.allowedTogether() {
		return cond, errConditions
	}
	return cond, nil
}

func (c *call) parseTime(header string) (time.Time, error) {
	s := c.header(header)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return t, badHeader(c.r, header)
	}
	return t, nil
}

// allowedTogether: before 2013-08-15 a request could have one conditional header, or one
// of the two pairs in which the entity tag decides.
func (q *conditions) allowedTogether() bool {
	a, b := q.match != nil, q.noneMatch != nil
	m, u := !q.modifiedSince.IsZero(), !q.unmodifiedSince.IsZero()
	return !(a && b || a && m || b && u || m && u)
}

func parseETags(values []string) (tags []string) {
	for _, v := range values {
		for _, tag := range strings.Split(v, ",") {
			if tag = strings.TrimSpace(tag); tag != "" { // but "" in quotes is a tag, of nothing
				tags = append(tags, strings.Trim(strings.TrimPrefix(tag, "W/"), `"`))
			}
		}
	}
	return tags
}

func includes(tags []string, etag string) bool {
	return slices.Contains(tags, "*") || slices.Contains(tags, etag)
}

// matched reports whether the conditions that ask for an unchanged resource hold, and
// changed whether those that ask for a changed one do. An entity tag overrules a time: "If
// a request specifies both the If-Match and If-Unmodified-Since headers, the request is
// evaluated based on the criteria specified in If-Match."
func (q *conditions) matched(etag string, modified time.Time) bool {
	if q.match != nil {
		return includes(q.match, etag)
	}
	return q.unmodifiedSince.IsZero() || !seconds(modified).After(q.unmodifiedSince)
}

func (q *conditions) changed(etag string, modified time.Time) bool {
	if q.noneMatch != nil {
		return !includes(q.noneMatch, etag)
	}
	return q.modifiedSince.IsZero() || seconds(modified).After(q.modifiedSince)
}

// seconds is a time as the header Last-Modified shows it.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// forRead decides about a resource that is read.
func (q *conditions) forRead(etag string, modified time.Time) error {
	switch {
	case slices.Contains(q.noneMatch, "*"):
		return errUnsatisfiable
	case !q.matched(etag, modified):
		return errCondition
	case !q.changed(etag, modified):
		return errNotModified
	}
	return nil
}

// forWrite decides about a resource that is to be changed, or about its lease.
func (q *conditions) forWrite(etag string, modified time.Time) error {
	if !q.matched(etag, modified) || !q.changed(etag, modified) {
		return errCondition
	}
	return nil
}

// forCreation decides about a resource that may be there (etag) or not (empty), and that
// is to be put as a whole.
func (q *conditions) forCreation(etag string, modified time.Time) error {
	switch {
	case etag == "" && q.match != nil:
		return errCondition
	case etag == "":
		return nil
	case slices.Contains(q.noneMatch, "*"):
		return errBlobExists
	}
	return q.forWrite(etag, modified)
}

// forLease decides about a lease operation. If-None-Match: * is no condition there, since
// a lease always needs a resource.
func (q conditions) forLease(etag string, modified time.Time) error {
	if slices.Contains(q.noneMatch, "*") {
		q.noneMatch = nil
	}
	return q.forWrite(etag, modified)
}
