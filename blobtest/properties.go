package blobtest

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"
)

// properties are the HTTP headers of a blob. They are immutable, so a change replaces all of them.
type properties struct {
	contentType, encoding, language, disposition, cacheControl string
	md5                                                        []byte
}

// parseProperties parses the headers x-ms-blob-*. If the parameter fallback is true and the request has no
// header x-ms-blob-content-type, the header Content-Type is used instead.
func (c *call) parseProperties(fallback bool) (*properties, error) {
	p := &properties{
		contentType:  c.header("x-ms-blob-content-type"),
		encoding:     c.header("x-ms-blob-content-encoding"),
		language:     c.header("x-ms-blob-content-language"),
		disposition:  c.header("x-ms-blob-content-disposition"),
		cacheControl: c.header("x-ms-blob-cache-control"),
	}
	if p.contentType == "" && fallback {
		p.contentType = c.header("Content-Type")
	}
	if p.contentType == "" {
		p.contentType = "application/octet-stream"
	}
	if s := c.header("x-ms-blob-content-md5"); s != "" {
		sum, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(sum) != 16 {
			return nil, badHeader(c.r, "x-ms-blob-content-md5")
		}
		p.md5 = sum
	}
	return p, nil
}

func (p *properties) setHeaders(h http.Header) {
	for name, v := range map[string]string{
		"Content-Type": p.contentType, "Content-Encoding": p.encoding, "Content-Language": p.language,
		"Content-Disposition": p.disposition, "Cache-Control": p.cacheControl,
	} {
		if v != "" {
			h.Set(name, v)
		}
	}
	if p.md5 != nil {
		h.Set("Content-MD5", base64.StdEncoding.EncodeToString(p.md5))
	}
}

const (
	metadataPrefix = "x-ms-meta-"
	maxMetadata    = 8 << 10 // bytes of names and values
)

// parseMetadata parses the headers x-ms-meta-*. A name must be an identifier.
func (c *call) parseMetadata() (metadata, error) {
	var m metadata
	size := 0
	for name, values := range c.r.Header {
		rest, ok := strings.CutPrefix(strings.ToLower(name), metadataPrefix)
		if !ok {
			continue
		}
		if !identifier(rest) {
			return nil, errMetadata
		}
		v := strings.TrimSpace(strings.Join(values, ","))
		size += len(rest) + len(v)
		m = append(m, [2]string{spellingOf(c.ctx, rest), v})
	}
	if size > maxMetadata {
		return nil, errMetadataSize
	}
	slices.SortFunc(m, func(a, b [2]string) int { return strings.Compare(strings.ToLower(a[0]), strings.ToLower(b[0])) })
	return m, nil
}

func identifier(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || c >= 'a' && c <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// setHeaders adds the metadata to the headers of an answer. It does not use [http.Header.Set], which would
// capitalize the names, because some clients recognize the prefix x-ms-meta- only in lower case.
func (m metadata) setHeaders(h http.Header) {
	for _, v := range m {
		h[metadataPrefix+v[0]] = []string{v[1]}
	}
}

// setMetadata serves Set Blob Metadata, which replaces all metadata of the blob.
func setMetadata(c *call) (*reply, error) {
	m, err := c.parseMetadata()
	if err != nil {
		return nil, err
	}
	return c.amend(func(v *version) { v.metadata = m })
}

// setProperties serves Set Blob Properties, which clears all properties that the request does not contain.
func setProperties(c *call) (*reply, error) {
	for _, name := range []string{"x-ms-blob-content-length", "x-ms-sequence-number-action"} { // of page blobs
		if v := c.header(name); v != "" {
			return nil, errHeader.with("HeaderName", name).with("HeaderValue", v)
		}
	}
	p, err := c.parseProperties(false)
	if err != nil {
		return nil, err
	}
	return c.amend(func(v *version) { v.props = p })
}

// amend changes the metadata or the properties of a blob.
func (c *call) amend(change func(v *version)) (*reply, error) {
	cond, err := c.writeConditions()
	if err != nil {
		return nil, err
	}
	if err := c.rejectBody(); err != nil {
		return nil, err
	}
	return c.writeBlob(write{cond: cond, prepare: func(f findResult) (plan, error) {
		old := f.entry.current
		if err := cond.checkWrite(old.etag, old.modified); err != nil {
			return plan{}, err
		}
		v := *old
		change(&v)
		return plan{v.size() - old.size(), func(now time.Time) (*entry, *reply) {
			e := *f.entry
			v.etag, v.modified = c.newETag(), now
			e.current = &v
			rep := newReply(http.StatusOK)
			c.describe(rep, v.etag, v.modified)
			rep.header.Set("x-ms-request-server-encrypted", "false")
			return &e, rep
		}}, nil
	}})
}
