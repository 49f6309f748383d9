package blobtest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fencedlease/lease"
)

// copyInfo describes the copy that created a blob.
type copyInfo struct {
	id        string
	source    string
	size      int64
	completed time.Time
}

func (k *copyInfo) setHeaders(h http.Header) {
	if k == nil {
		return
	}
	h.Set("x-ms-copy-id", k.id)
	h.Set("x-ms-copy-status", "success")
	h.Set("x-ms-copy-source", k.source)
	h.Set("x-ms-copy-progress", fmt.Sprintf("%d/%d", k.size, k.size))
	h.Set("x-ms-copy-completion-time", k.completed.UTC().Format(http.TimeFormat))
}

// copyBlob serves Copy Blob and, with the header x-ms-requires-sync, Copy Blob From URL. The source must be
// in the same account. This server answers when the copy is complete. The real service may continue after its
// answer, so it requires that a lease on the destination is infinite. This server requires the same.
//
// Before version 2012-02-12, three rules are different:
//
//   - The lease on the destination may also be finite.
//   - The properties of the destination do not describe the copy.
//   - The server answers with the status 201: "a successful operation returns status code 201 (Created)".
func copyBlob(c *call) (*reply, error) {
	if t := c.header("x-ms-blob-type"); t != "" { // Put Blob From URL
		return nil, errHeader.with("HeaderName", "x-ms-copy-source").with("HeaderValue", c.header("x-ms-copy-source"))
	}
	m, err := c.parseMetadata()
	if err != nil {
		return nil, err
	}
	src, err := c.readSource()
	if err != nil {
		return nil, err
	}
	tier, err := c.accessTier()
	if err != nil {
		return nil, err
	}
	v := *src.version
	v.tier = tier
	v.snapshot, v.created = time.Time{}, time.Time{}
	if m != nil {
		v.metadata = m
	}
	source, _, _ := strings.Cut(c.header("x-ms-copy-source"), "?")
	v.copied = &copyInfo{id: uuid.NewString(), source: source, size: v.data.size()}
	if c.version < lease.Version20120212 {
		v.copied = nil
		return c.putContent(&v, write{}, http.StatusCreated, nil)
	}
	sync := strings.EqualFold(c.header("x-ms-requires-sync"), "true")
	return c.putContent(&v, write{infinite: !sync}, http.StatusAccepted, func(_ findResult, rep *reply) error {
		rep.header.Set("x-ms-copy-id", v.copied.id)
		rep.header.Set("x-ms-copy-status", "success")
		return nil
	})
}

// The method readSource reads the source of a copy. The server handles this read like a separate request of
// the same client. A client with the key of the account may read any source. Other clients must sign the
// address of the source. A signature in the address is verified even if the client has the key.
func (c *call) readSource() (r reading, err error) {
	old := c.version < lease.Version20120212
	u, err := url.Parse(c.header("x-ms-copy-source"))
	if err != nil {
		return r, badHeader(c.r, "x-ms-copy-source")
	}
	switch named := u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/"); {
	case named && old: // "/accountName/containerName/blobName"
	case u.Scheme == "" || u.Host == "":
		return r, badHeader(c.r, "x-ms-copy-source")
	case u.Host != c.r.Host:
		return r, errForeignSource
	}
	req := &http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: http.Header{}, RemoteAddr: c.r.RemoteAddr, TLS: c.r.TLS}
	src := c.newCall(c.ctx, req)
	src.version = c.version
	if err := src.locate(); err != nil || src.kind != kindBlob {
		return r, badHeader(c.r, "x-ms-copy-source")
	}
	if src.account != c.account {
		return r, errForeignSource
	}
	if err := src.refuseUnserved(); err != nil {
		return r, err
	}
	if !c.access.all || src.query.Get("sig") != "" {
		if err := src.admit(&operation{permissions: "r", resourceType: "o"}); err != nil {
			return r, err
		}
	}
	if s := c.header("x-ms-source-lease-id"); s != "" {
		if !old { // "unsupported in 2012-02-12 and later"
			return r, errHeader.with("HeaderName", "x-ms-source-lease-id").with("HeaderValue", s)
		}
		if src.id, err = lease.ParseID(s); err != nil || src.id.IsZero() {
			return r, badHeader(c.r, "x-ms-source-lease-id")
		}
	}
	cond, err := c.readConditions("x-ms-source-")
	if err != nil {
		return r, err
	}
	if r, err = src.readBlob(false); err != nil {
		if err == errBlobNotFound || err == errContainerNotFound {
			err = errCopySource
		}
		return r, err
	}
	if cond.checkRead(r.etag, r.modified) != nil {
		return r, errSourceCond
	}
	return r, nil
}

// abortCopy always fails, because a copy is already complete when its request is answered.
func abortCopy(c *call) (*reply, error) {
	if c.query.Get("copyid") == "" {
		return nil, errMissingQuery.with("QueryParameterName", "copyid")
	}
	if !strings.EqualFold(c.header("x-ms-copy-action"), "abort") {
		return nil, noHeader("x-ms-copy-action")
	}
	return c.writeBlob(write{prepare: func(findResult) (plan, error) { return plan{}, errNoPendingCopy }})
}
