package blobtest

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// getBlob serves Get Blob and, for the method HEAD, Get Blob Properties.
func getBlob(c *call) (*reply, error) {
	r, err := c.readBlob(false)
	if err != nil {
		return nil, err
	}
	size := r.data.size()
	rep := newReply(http.StatusOK)
	r.props.setHeaders(rep.header)
	c.overrideHeaders(rep)
	c.addVersion(rep, r)
	rep.header.Set("Accept-Ranges", "bytes")
	rep.header.Set("x-ms-blob-type", "BlockBlob")
	rep.header.Set("x-ms-server-encrypted", "false")
	if r.tier != "" {
		rep.header.Set(headerTier, r.tier)
	}
	rep.header.Set("x-ms-creation-time", r.created.UTC().Format(http.TimeFormat))
	r.copied.setHeaders(rep.header)
	if c.r.Method == http.MethodHead {
		rep.header.Set("Content-Length", strconv.FormatInt(size, 10))
		return rep, nil
	}
	first, last, partial, err := c.parseRange(size)
	if err != nil {
		return nil, err
	}
	const wantsMD5 = "x-ms-range-get-content-md5"
	sums := strings.EqualFold(c.header(wantsMD5), "true")
	// The service computes the MD5 of a range of at most 4 MiB, but not of a whole blob.
	if sums && (!partial || last-first+1 > 4<<20) {
		return nil, badHeader(c.r, wantsMD5)
	}
	if !partial {
		rep.body = r.data
		return rep, nil
	}
	rep.status, rep.body = http.StatusPartialContent, r.data.slice(first, last-first+1)
	rep.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, size))
	if r.props.md5 != nil {
		rep.header.Set("x-ms-blob-content-md5", rep.header.Get("Content-MD5"))
		rep.header.Del("Content-MD5")
	}
	if sums {
		sum := md5.New()
		for _, b := range rep.body {
			sum.Write(b)
		}
		rep.header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	}
	return rep, nil
}

// addVersion adds the headers of every answer to a read: the entity tag, the time of the last change, the
// metadata and the state of the lease.
func (c *call) addVersion(rep *reply, r reading) {
	c.describe(rep, r.etag, r.modified)
	r.metadata.setHeaders(rep.header)
	if c.snapshot.IsZero() {
		c.addLease(rep, r.record)
	}
}

// getMetadata serves Get Blob Metadata.
func getMetadata(c *call) (*reply, error) {
	r, err := c.readBlob(false)
	if err != nil {
		return nil, err
	}
	rep := newReply(http.StatusOK)
	c.addVersion(rep, r)
	return rep, nil
}

// parseRange parses the byte range of a read. It accepts ranges such as "bytes=100-" and "bytes=100-199", and
// ignores ranges of any other form. The header x-ms-range takes precedence over the header Range.
func (c *call) parseRange(size int64) (first, last int64, partial bool, err error) {
	s := c.header("x-ms-range")
	if s == "" {
		s = c.header("Range")
	}
	from, to, ok := strings.Cut(strings.TrimPrefix(s, "bytes="), "-")
	if !ok || !strings.HasPrefix(s, "bytes=") {
		return 0, 0, false, nil
	}
	last = size - 1
	if first, err = strconv.ParseInt(from, 10, 64); err != nil || first < 0 {
		return 0, 0, false, nil
	}
	if to != "" {
		n, err := strconv.ParseInt(to, 10, 64)
		if err != nil || n < first {
			return 0, 0, false, nil
		}
		last = min(last, n)
	}
	if first >= size {
		return 0, 0, false, errRange.withHeader("Content-Range", fmt.Sprintf("bytes */%d", size))
	}
	return first, last, true, nil
}
