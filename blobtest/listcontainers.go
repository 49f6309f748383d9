package blobtest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
)

func listContainers(c *call) (*reply, error) {
	p, err := c.parsePage()
	if err != nil {
		return nil, err
	}
	b := c.startList(p)
	b.WriteString("<Containers>")
	var next *position
	count := 0
	for _, it := range c.account.list(p) {
		if count++; count > p.max {
			next = &position{name: it.name}
			break
		}
		res, err := lease.Inspect(c.ctx, c.auth, LeaseName(c.account.name, it.name, ""))
		if err != nil {
			return nil, err
		}
		b.WriteString("<Container>")
		element(b, "Name", it.name)
		b.WriteString("<Properties>")
		element(b, "Last-Modified", modifiedText(it.modified))
		element(b, "Etag", c.quoteETag(it.etag)) // quoted, unlike the Etag of a blob
		c.writeLease(b, res.Record)
		if it.public != "" {
			element(b, "PublicAccess", it.public)
		}
		b.WriteString("</Properties>")
		writeMetadata(b, p, it.metadata)
		b.WriteString("</Container>")
	}
	b.WriteString("</Containers>")
	return endList(b, next), nil
}

type listed struct {
	name string
	*attributes
}

func (a *account) list(p page) (all []listed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, b := range a.containers {
		if name == logsContainer && !slices.Contains(p.include, "system") {
			continue
		}
		if strings.HasPrefix(name, p.prefix) && name >= p.marker.name {
			all = append(all, listed{name, b.attrs})
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.name, b.name) })
	return all
}
