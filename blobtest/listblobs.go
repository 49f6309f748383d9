package blobtest

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
)

// listBlobs serves List Blobs, with or without a delimiter. It ignores the container's lease and lease IDs.
func listBlobs(c *call) (*reply, error) {
	p, err := c.parsePage()
	if err != nil {
		return nil, err
	}
	items, ok := c.account.listPage(c.container, p)
	if !ok {
		return nil, errContainerNotFound
	}
	var next *position
	if len(items) > p.max {
		next = &items[p.max].position
		items = items[:p.max]
	}
	b := c.startList(p)
	if p.delimiter != "" {
		element(b, "Delimiter", p.delimiter)
	}
	b.WriteString("<Blobs>")
	for _, it := range items {
		if it.version == nil {
			b.WriteString("<BlobPrefix>")
			writeName(b, it.name)
			b.WriteString("</BlobPrefix>")
			continue
		}
		var record lease.Record
		if it.position.snapshot == "" {
			name := LeaseName(c.account.name, c.container, it.name)
			res, err := lease.Inspect(c.ctx, c.auth, name)
			if err != nil {
				return nil, err
			}
			record = res.Record
		}
		c.writeItem(b, p, it, record)
	}
	b.WriteString("</Blobs>")
	return endList(b, next), nil
}

// An item is a blob, a snapshot or a common prefix in a list of blobs. A common prefix has no version.
type item struct {
	position
	*version
}

// listPage returns the items of a page. If there are more items, it also returns the first item of the next
// page. It returns false if the container does not exist.
func (a *account) listPage(container string, p page) (items []item, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.containers[container]
	if b == nil {
		return nil, false
	}
	prefixes := map[string]bool{}
	for name := range b.blobs {
		if !strings.HasPrefix(name, p.prefix) {
			continue
		}
		if p.delimiter != "" {
			if head, _, cut := strings.Cut(name[len(p.prefix):], p.delimiter); cut {
				if head = p.prefix + head + p.delimiter; !prefixes[head] {
					prefixes[head] = true
					items = append(items, item{position: position{name: head}})
				}
				continue
			}
		}
		items = append(items, b.blobItems(name, p)...)
	}
	items = slices.DeleteFunc(items, func(it item) bool { return it.compare(p.marker) < 0 && p.marker != position{} })
	slices.SortFunc(items, func(a, b item) int { return a.compare(b.position) })
	return items[:min(len(items), p.max+1)], true
}

// blobItems returns the item of the named blob. Its snapshots come first, if the client asked for them.
func (b *container) blobItems(name string, p page) (items []item) {
	e := b.blobs[name]
	if slices.Contains(p.include, "snapshots") && p.delimiter == "" {
		for _, v := range e.snapshots {
			s := v.snapshot.Format(sevenDigits)
			items = append(items, item{position{name, s}, v})
		}
	}
	switch {
	case e.current != nil:
		items = append(items, item{position{name: name}, e.current})
	case slices.Contains(p.include, "uncommittedblobs"):
		items = append(items, item{position{name: name}, findResult{attributes: b.attrs}.uncommittedVersion()})
	}
	return items
}

func (c *call) writeItem(b *bytes.Buffer, p page, it item, r lease.Record) {
	b.WriteString("<Blob>")
	writeName(b, it.name)
	if it.position.snapshot != "" {
		element(b, "Snapshot", it.position.snapshot)
	}
	b.WriteString("<Properties>")
	v := it.version
	if !v.created.IsZero() {
		element(b, "Creation-Time", modifiedText(v.created))
	}
	element(b, "Last-Modified", modifiedText(v.modified))
	element(b, "Etag", v.etag)
	element(b, "Content-Length", strconv.FormatInt(v.data.size(), 10))
	element(b, "Content-Type", v.props.contentType)
	element(b, "Content-Encoding", v.props.encoding)
	element(b, "Content-Language", v.props.language)
	element(b, "Content-MD5", base64.StdEncoding.EncodeToString(v.props.md5))
	element(b, "Cache-Control", v.props.cacheControl)
	element(b, "Content-Disposition", v.props.disposition)
	element(b, "BlobType", "BlockBlob")
	if v.tier != "" {
		element(b, "AccessTier", v.tier)
	}
	if it.position.snapshot == "" {
		c.writeLease(b, r)
	}
	if v.copied != nil && slices.Contains(p.include, "copy") {
		element(b, "CopyId", v.copied.id)
		element(b, "CopySource", v.copied.source)
		element(b, "CopyStatus", "success")
		element(b, "CopyCompletionTime", modifiedText(v.copied.completed))
	}
	b.WriteString("</Properties>")
	writeMetadata(b, p, v.metadata)
	b.WriteString("</Blob>")
}
