package blobtest

import (
	"net/http"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// createContainer serves Create Container. A new container has no lease.
func createContainer(c *call) (*reply, error) {
	m, err := c.parseMetadata()
	if err != nil {
		return nil, err
	}
	public, err := c.publicAccess()
	if err != nil {
		return nil, err
	}
	attrs := &attributes{etag: c.newETag(), metadata: m, public: public}
	if err := c.create(attrs); err != nil {
		return nil, err
	}
	rep := newReply(http.StatusCreated)
	c.describe(rep, attrs.etag, attrs.modified)
	return rep, nil
}

// create adds a new container to the account. Its Last-Modified is the time of the authority.
func (c *call) create(attrs *attributes) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if c.account.find(c.container, "").container != nil {
		return errContainerExists
	}
	if err := c.reserve(attrs.size()); err != nil {
		return err
	}
	if attrs.modified, err = c.endOldLease(); err != nil {
		return err
	}
	c.account.addContainer(c.container, &container{attrs: attrs, blobs: map[string]*entry{}})
	c.reserved -= attrs.size()
	return nil
}

// publicAccess parses the header x-ms-blob-public-access, whose value is "container", "blob" or "". The
// server stores and returns this value, but never allows public access.
func (c *call) publicAccess() (string, error) {
	s := strings.ToLower(c.header(headerPublic))
	if s != "" && s != "container" && s != "blob" {
		return "", badHeader(c.r, headerPublic)
	}
	return s, nil
}

// getContainer serves the operations Get Container Properties and Get Container Metadata.
func getContainer(c *call) (*reply, error) {
	f, res, leave, err := c.enterContainer(lease.ActionRead)
	if err != nil {
		return nil, err
	}
	leave()
	rep := newReply(http.StatusOK)
	c.describe(rep, f.etag, f.modified)
	f.metadata.setHeaders(rep.header)
	if c.query.Get("comp") == "" {
		c.addLease(rep, res.Record)
		rep.header.Set("x-ms-has-immutability-policy", "false")
		rep.header.Set("x-ms-has-legal-hold", "false")
		if f.public != "" {
			rep.header.Set(headerPublic, f.public)
		}
	}
	return rep, nil
}

// setContainerMetadata serves Set Container Metadata. The request need not contain a lease ID, because a
// lease protects a container only from deletion. However, a lease ID in the request must match.
func setContainerMetadata(c *call) (*reply, error) {
	m, err := c.parseMetadata()
	if err != nil {
		return nil, err
	}
	f, res, leave, err := c.enterContainer(lease.ActionRead)
	if err != nil {
		return nil, err
	}
	defer leave()
	attrs := &attributes{etag: c.newETag(), modified: res.Now, metadata: m, public: f.public}
	grows := attrs.size() - f.attributes.size()
	if err := c.reserve(grows); err != nil {
		return nil, err
	}
	c.account.setAttributes(f.container, attrs)
	c.reserved -= grows
	rep := newReply(http.StatusOK)
	c.describe(rep, attrs.etag, attrs.modified)
	return rep, nil
}

// deleteContainer serves Delete Container. The documentation says: "a container may be deleted even if blobs
// within it have active leases. Use the Lease Container operation to control rights to delete a container."
func deleteContainer(c *call) (*reply, error) {
	_, _, leave, err := c.enterContainer(lease.ActionWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.reserved += c.account.removeContainer(c.container)
	return newReply(http.StatusAccepted), nil
}

// The method enterContainer locks the container, evaluates the conditional headers, and checks the lease of
// the container. Unless the method returns an error, the caller must call the returned function to unlock the
// container.
func (c *call) enterContainer(use lease.Action) (f findResult, res lease.Result, leave func(), err error) {
	cond, err := c.containerConditions()
	if err != nil {
		return f, res, nil, err
	}
	if leave, err = c.enter(); err != nil {
		return f, res, nil, err
	}
	if f = c.account.find(c.container, ""); f.container == nil {
		leave()
		return f, res, nil, errContainerNotFound
	}
	refusal := cond.checkWrite(f.etag, f.modified)
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		refusal = nil // the service ignores conditions in reads of a container
	}
	if refusal != nil {
		if err = c.wouldRefuse(use); err == nil {
			err = refusal
		}
	} else {
		res, err = c.do(lease.Request{Action: use, ID: c.id})
	}
	if err != nil {
		leave()
		return f, res, nil, err
	}
	return f, res, leave, nil
}

func (a *account) addContainer(name string, b *container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.containers[name] = b
}

// removeContainer removes a container and returns its size in bytes. It returns 0 if there is no such
// container.
func (a *account) removeContainer(name string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.containers[name]
	if k == nil {
		return 0
	}
	delete(a.containers, name)
	return k.size()
}

func (a *account) setAttributes(b *container, attrs *attributes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.attrs = attrs
}

// modifiedText returns t in the format that lists and headers use.
func modifiedText(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
