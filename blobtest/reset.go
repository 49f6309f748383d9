package blobtest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
)

// Reset deletes all containers and blobs, and then creates the containers of [Options.Containers]. Blobs that
// are created later have no lease, but the fencing tokens continue to rise. The clock does not change.
// Concurrent requests can be executed before, during or after the reset. If Reset returns an error, it may
// have deleted or created only some of the containers.
func (h *Handler) Reset(ctx context.Context) error {
	h.mustBeMade()
	for _, a := range h.accounts {
		for _, name := range a.containerNames() {
			c := h.ownCall(ctx, a, name)
			leave, err := c.enter()
			if err != nil {
				return fmt.Errorf("blobtest: deleting the container %s/%s: %w", a.name, name, err)
			}
			c.quota.release(a.removeContainer(name))
			leave()
		}
	}
	return h.createContainers(ctx)
}

// createContainers creates the containers of [Options.Containers] in every account.
func (h *Handler) createContainers(ctx context.Context) error {
	for _, a := range h.accounts {
		for _, name := range h.o.Containers {
			c := h.ownCall(ctx, a, name)
			err := c.create(&attributes{etag: h.newETag()})
			c.quota.release(c.reserved)
			if err != nil && err != errContainerExists { // another request created the container meanwhile
				return fmt.Errorf("blobtest: creating the container %s/%s: %w", a.name, name, err)
			}
		}
	}
	return nil
}

// ownCall returns a call with which the Handler itself creates or deletes containers.
func (h *Handler) ownCall(ctx context.Context, a *account, name string) *call {
	c := h.newCall(ctx, &http.Request{Header: http.Header{}, URL: &url.URL{}})
	c.account, c.kind, c.container = a, kindContainer, name
	return c
}

func (a *account) containerNames() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.containers))
}
