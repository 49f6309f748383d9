package blobtest

import (
	"crypto/md5"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"
)

// putBlobOrCopy serves Put Blob and Copy Blob, whose requests have the same method and URL.
func putBlobOrCopy(c *call) (*reply, error) {
	if c.header("x-ms-copy-source") != "" {
		return copyBlob(c)
	}
	return putBlob(c)
}

// putBlob serves Put Blob for block blobs.
func putBlob(c *call) (*reply, error) {
	switch t := c.header("x-ms-blob-type"); {
	case t == "":
		return nil, noHeader("x-ms-blob-type")
	case strings.EqualFold(t, "PageBlob") || strings.EqualFold(t, "AppendBlob"):
		return nil, errHeader.with("HeaderName", "x-ms-blob-type").with("HeaderValue", t)
	case !strings.EqualFold(t, "BlockBlob"):
		return nil, badHeader(c.r, "x-ms-blob-type")
	}
	v, err := c.parseContent()
	if err != nil {
		return nil, err
	}
	if v.props.encoding == "" {
		v.props.encoding = c.header("Content-Encoding")
	}
	if v.props.language == "" {
		v.props.language = c.header("Content-Language")
	}
	if v.props.cacheControl == "" {
		v.props.cacheControl = c.header("Cache-Control")
	}
	data, err := c.readBody()
	if err != nil {
		return nil, err
	}
	sum := md5.Sum(data)
	if v.props.md5 != nil && !slices.Equal(v.props.md5, sum[:]) {
		return nil, errMD5
	}
	v.props.md5 = sum[:]
	if len(data) > 0 {
		v.data = segments{data}
	}
	return c.putContent(v, write{}, http.StatusCreated, nil)
}

func (c *call) parseContent() (*version, error) {
	props, err := c.parseProperties(true)
	if err != nil {
		return nil, err
	}
	m, err := c.parseMetadata()
	if err != nil {
		return nil, err
	}
	tier, err := c.accessTier()
	if err != nil {
		return nil, err
	}
	return &version{props: props, metadata: m, tier: tier}, nil
}

// accessTier returns the access tier for the new content of a blob, or "" if the client sets none. The server
// stores and returns the tier, but the tier has no other effect.
func (c *call) accessTier() (string, error) {
	s := c.header(headerTier)
	for _, tier := range []string{"", "Hot", "Cool", "Cold", "Archive"} {
		if strings.EqualFold(s, tier) {
			return tier, nil
		}
	}
	return "", badHeader(c.r, headerTier)
}

// putContent stores v as the content of a blob. It creates the blob if it does not exist, and keeps its
// snapshots. If the callback amend is not nil, putContent calls it after the check of the conditional
// headers. The callback can change v and the answer, or return a failure.
func (c *call) putContent(v *version, w write, status int, amend func(f findResult, rep *reply) error) (*reply, error) {
	cond, err := c.writeConditions()
	if err != nil {
		return nil, err
	}
	// The condition If-None-Match: * means that the blob must not exist, but a leased blob always exists.
	// Therefore the service ignores this condition in a request with a lease ID.
	if !c.id.IsZero() && slices.Contains(cond.noneMatch, "*") {
		cond.noneMatch = nil
	}
	rep := newReply(status)
	w.creates, w.prepare = true, func(f findResult) (plan, error) {
		var old version
		if f.entry != nil && f.entry.current != nil {
			old = *f.entry.current
			if err := cond.checkCreation(old.etag, old.modified); err != nil {
				return plan{}, err
			}
			if !c.access.mayReplace() {
				return plan{}, errOverwrite
			}
		} else if err := cond.checkCreation("", time.Time{}); err != nil {
			return plan{}, err
		}
		if amend != nil {
			if err := amend(f, rep); err != nil {
				return plan{}, err
			}
		}
		e := &entry{current: v}
		if f.entry != nil {
			e.snapshots = f.entry.snapshots
		}
		return plan{e.size() - f.entry.size(), func(now time.Time) (*entry, *reply) {
			v.etag, v.created, v.modified = c.newETag(), now, now
			if !old.created.IsZero() {
				v.created = old.created
			}
			if v.copied != nil {
				v.copied.completed = now
			}
			c.describe(rep, v.etag, v.modified)
			rep.header.Set("x-ms-request-server-encrypted", "false")
			if v.props.md5 != nil && v.copied == nil {
				rep.header.Set("Content-MD5", base64.StdEncoding.EncodeToString(v.props.md5))
			}
			return e, rep
		}}, nil
	}
	return c.writeBlob(w)
}

// deleteBlob serves Delete Blob, which deletes a blob with its snapshots, only the snapshots, or one
// snapshot.
func deleteBlob(c *call) (*reply, error) {
	if !c.snapshot.IsZero() {
		return deleteSnapshot(c)
	}
	cond, err := c.writeConditions()
	if err != nil {
		return nil, err
	}
	which := strings.ToLower(c.header("x-ms-delete-snapshots"))
	if which != "" && which != "include" && which != "only" {
		return nil, badHeader(c.r, "x-ms-delete-snapshots")
	}
	return c.writeBlob(write{blocks: true, cond: cond, reads: which == "only", prepare: func(f findResult) (plan, error) {
		v := f.entry.current
		if v == nil {
			v = f.uncommittedVersion()
		}
		if err := cond.checkWrite(v.etag, v.modified); err != nil {
			return plan{}, err
		}
		if len(f.entry.snapshots) > 0 && which == "" {
			return plan{}, errSnapshotsPresent
		}
		var left *entry
		if which == "only" {
			left = &entry{current: f.entry.current, blocks: f.entry.blocks}
		}
		return plan{left.size() - f.entry.size(), func(time.Time) (*entry, *reply) {
			rep := newReply(http.StatusAccepted)
			rep.header.Set("x-ms-delete-type-permanent", "true")
			return left, rep
		}}, nil
	}})
}
