package blobtest

import (
	"net/http"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// createContainer is Create Container. A new container has no lease.
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

// create puts a new container under its name, at the time of the authority.
func (c *call) create(attrs *attributes) error {
	leave, err := c.enter()
	if err != nil {
		return err
	}
	defer leave()
	if c.account.find(c.container, "").box != nil {
		return errContainerExists
	}
	if err := c.hold(attrs.size()); err != nil {
		return err
	}
	if attrs.modified, err = c.forget(); err != nil {
		return err
	}
	c.account.addBox(c.container, &box{attrs: attrs, blobs: map[string]*entry{}})
	c.held -= attrs.size()
	return nil
}

// publicAccess returns who may read a new container: "container", "blob" or empty. It is kept and
// shown, but requests without a signature are refused all the same.
func (c *call) publicAccess() (string, error) {
	s := strings.ToLower(c.header(headerPublic))
	if s != "" && s != "container" && s != "blob" {
		return "", badHeader(c.r, headerPublic)
	}
	return s, nil
}

// getContainer is Get Container Properties and Get Container Metadata.
func getContainer(c *call) (*reply, error) {
	f, res, leave, err := c.enterContainer(lease.ActionRead)
	if err != nil {
		return nil, err
	}
	leave()
	rep := newReply(http.StatusOK)
	c.describe(rep, f.etag, f.modified)
	f.metadata.write(rep.header)
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

// setContainerMetadata is Set Container Metadata. A container's lease guards its deletion
// and nothing else, so here an ID is only compared.
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
	if err := c.hold(grows); err != nil {
		return nil, err
	}
	c.account.setAttributes(f.box, attrs)
	c.held -= grows
	rep := newReply(http.StatusOK)
	c.describe(rep, attrs.etag, attrs.modified)
	return rep, nil
}

// deleteContainer is Delete Container: "a container may be deleted even if blobs within it
// have active leases. Use the Lease Container operation to control rights to delete a
// container."
func deleteContainer(c *call) (*reply, error) {
	_, _, leave, err := c.enterContainer(lease.ActionWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.held += c.account.removeBox(c.container)
	return newReply(http.StatusAccepted), nil
}

// enterContainer enters the gate of the container and does one use of its lease. Of the
// conditional headers, containers know the two with times. If the error is nil the caller
// calls leave.
func (c *call) enterContainer(use lease.Action) (f found, res lease.Result, leave func(), err error) {
	cond, err := c.containerConditions()
	if err != nil {
		return f, res, nil, err
	}
	if leave, err = c.enter(); err != nil {
		return f, res, nil, err
	}
	if f = c.account.find(c.container, ""); f.box == nil {
		leave()
		return f, res, nil, errContainerNotFound
	}
	veto := cond.forWrite(f.etag, f.modified)
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodHead {
		veto = nil // reads of a container have no conditions
	}
	if veto != nil {
		if err = c.wouldRefuse(use); err == nil {
			err = veto
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

func (a *account) addBox(name string, b *box) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.containers[name] = b
}

// removeBox takes a container away and returns its size.
func (a *account) removeBox(name string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.containers[name]
	delete(a.containers, name)
	return b.size()
}

func (a *account) setAttributes(b *box, attrs *attributes) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.attrs = attrs
}

// modifiedText is a time as lists and headers show it.
func modifiedText(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
