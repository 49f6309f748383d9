package blobtest

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// conditions holds the conditional headers of a request. A copy has a second set for its source.
type conditions struct {
	match, noneMatch               []string // entity tags without quotes, or *; nil if the header is missing
	modifiedSince, unmodifiedSince time.Time
	all                            bool // evaluate all headers; otherwise the header with an entity tag takes precedence over the header with a time
}

// readConditions parses the conditional headers of a read, whose names begin with prefix. A read can have
// several of them: "Beginning with version 2013-08-15, the Get Blob and Get Blob Properties operations
// support multiple conditional headers."
func (c *call) readConditions(prefix string) (conditions, error) {
	q, err := c.parseConditions(prefix)
	if q.all = c.version >= versionStrictLease; err == nil && !q.all && !q.isSupported() {
		return q, errConditions
	}
	return q, err
}

// writeConditions parses the conditional headers of a write or a lease operation.
func (c *call) writeConditions() (conditions, error) {
	q, err := c.parseConditions("")
	if err == nil && !q.isSupported() {
		return q, errConditions
	}
	return q, err
}

// containerConditions parses the conditional headers of a container operation. It ignores entity tags.
func (c *call) containerConditions() (conditions, error) {
	q, err := c.parseConditions("")
	q.match, q.noneMatch = nil, nil
	return q, err
}

func (c *call) parseConditions(prefix string) (q conditions, err error) {
	q.match = parseETags(c.r.Header.Values(prefix + "If-Match"))
	q.noneMatch = parseETags(c.r.Header.Values(prefix + "If-None-Match"))
	if q.modifiedSince, err = c.parseTime(prefix + "If-Modified-Since"); err != nil {
		return q, err
	}
	q.unmodifiedSince, err = c.parseTime(prefix + "If-Unmodified-Since")
	return q, err
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

func parseETags(values []string) (tags []string) {
	for _, v := range values {
		for _, tag := range strings.Split(v, ",") {
			if tag = strings.TrimSpace(tag); tag != "" { // an empty entity tag in quotes is valid, but no blob has it
				tags = append(tags, strings.Trim(strings.TrimPrefix(tag, "W/"), `"`))
			}
		}
	}
	return tags
}

// isSupported reports whether the service supports the conditional headers: a single one, If-Match with
// If-Unmodified-Since, or If-None-Match with If-Modified-Since, each with one entity tag. "With the exception
// of the two combinations of conditional headers listed above, a request may specify only a single
// conditional header."
func (q *conditions) isSupported() bool {
	if len(q.match) > 1 || len(q.noneMatch) > 1 {
		return false
	}
	match, noneMatch := q.match != nil, q.noneMatch != nil
	modified, unmodified := !q.modifiedSince.IsZero(), !q.unmodifiedSince.IsZero()
	switch {
	case match:
		return !noneMatch && !modified
	case noneMatch:
		return !unmodified
	}
	return !modified || !unmodified
}

func includes(tags []string, etag string) bool {
	return slices.Contains(tags, "*") || slices.Contains(tags, etag)
}

func (q *conditions) matchHolds(etag string, modified time.Time) bool {
	if q.match != nil && !includes(q.match, etag) {
		return false
	}
	if q.match != nil && !q.all {
		return true
	}
	return q.unmodifiedSince.IsZero() || !wholeSeconds(modified).After(q.unmodifiedSince)
}

// The method noneMatchHolds reports whether the conditions If-None-Match and If-Modified-Since hold. If a
// request contains both conditions, q.all says how they are combined. If q.all is true, either If-None-Match
// or If-Modified-Since must hold, as in the parentheses of "If-Match && If-Unmodified-Since && (If-None-Match
// || If-Modified-Since)". If q.all is false, If-None-Match takes precedence, and If-Modified-Since is
// ignored.
func (q *conditions) noneMatchHolds(etag string, modified time.Time) bool {
	newer := wholeSeconds(modified).After(q.modifiedSince)
	switch {
	case q.noneMatch == nil:
		return q.modifiedSince.IsZero() || newer
	case !includes(q.noneMatch, etag):
		return true
	}
	return q.all && !q.modifiedSince.IsZero() && newer
}

// wholeSeconds truncates t to whole seconds, because the header Last-Modified contains no fractions of a
// second.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// checkRead evaluates the conditional headers of a read of an existing blob.
func (q *conditions) checkRead(etag string, modified time.Time) error {
	switch {
	case slices.Contains(q.noneMatch, "*"):
		return errUnsatisfiable
	case !q.matchHolds(etag, modified):
		return errCondition
	case !q.noneMatchHolds(etag, modified):
		return errNotModified
	}
	return nil
}

// missingReadError returns the failure for a read of a blob that does not exist.
func (q *conditions) missingReadError() error {
	if slices.Contains(q.noneMatch, "*") {
		return errUnsatisfiable
	}
	return q.missingError()
}

// missingError returns the failure for a write or a lease operation on a blob that does not exist.
func (q *conditions) missingError() error {
	if q.match != nil {
		return errCondition
	}
	return errBlobNotFound
}

// checkWrite evaluates the conditional headers of a write or a lease operation on an existing resource,
// for which the service ignores If-None-Match: *.
func (q conditions) checkWrite(etag string, modified time.Time) error {
	if slices.Contains(q.noneMatch, "*") {
		q.noneMatch = nil
	}
	if !q.matchHolds(etag, modified) || !q.noneMatchHolds(etag, modified) {
		return errCondition
	}
	return nil
}

// checkCreation evaluates the conditional headers of a request that writes a whole blob. If no blob exists
// yet, etag is empty.
func (q *conditions) checkCreation(etag string, modified time.Time) error {
	switch {
	case etag == "" && q.match != nil:
		return errCondition
	case etag == "":
		return nil
	case slices.Contains(q.noneMatch, "*"):
		return errBlobExists
	}
	return q.checkWrite(etag, modified)
}
