package blobtest

import (
	"net/http"
	"slices"
	"strings"
)

// An operation is one that is served: how it is asked for, and what a shared access
// signature must permit. Any one of the letters is enough.
type operation struct {
	method       string
	kind         kind
	comp         string
	permissions  string
	resourceType string // s, c or o, in an account's signature; empty: that of the address
	listsBlobs   bool   // the one operation on a container for which its signature is enough
	run          func(*call) (*reply, error)
}

// operations of the service, its containers and its blobs. HEAD is served where GET is.
var served = []operation{
	{http.MethodGet, service, "list", "l", "s", false, listContainers},
	{http.MethodGet, settings, "properties", "r", "s", false, getServiceProperties},
	{http.MethodGet, information, "properties", "rwdlacu", "", false, getAccountInformation},

	{http.MethodPut, container, "", "cw", "c", false, createContainer},
	{http.MethodGet, container, "", "r", "c", false, getContainer},
	{http.MethodDelete, container, "", "d", "c", false, deleteContainer},
	{http.MethodGet, container, "metadata", "r", "c", false, getContainer},
	{http.MethodPut, container, "metadata", "w", "c", false, setContainerMetadata},
	{http.MethodPut, container, "lease", "wd", "c", false, leaseResource},
	{http.MethodGet, container, "list", "l", "c", true, listBlobs},

	{http.MethodPut, blob, "", "cw", "o", false, putBlobOrCopy},
	{http.MethodGet, blob, "", "r", "o", false, getBlob},
	{http.MethodDelete, blob, "", "d", "o", false, deleteBlob},
	{http.MethodGet, blob, "metadata", "r", "o", false, getMetadata},
	{http.MethodPut, blob, "metadata", "w", "o", false, setMetadata},
	{http.MethodPut, blob, "properties", "w", "o", false, setProperties},
	{http.MethodPut, blob, "lease", "wd", "o", false, leaseResource},
	{http.MethodPut, blob, "snapshot", "cw", "o", false, snapshotBlob},
	{http.MethodPut, blob, "block", "w", "o", false, putBlock},
	{http.MethodPut, blob, "blocklist", "cw", "o", false, putBlockList},
	{http.MethodGet, blob, "blocklist", "r", "o", false, getBlockList},
	{http.MethodPut, blob, "copy", "w", "o", false, abortCopy},
}

// route finds the operation. One that is not served is refused as the service refuses what
// it does not know; if it is for its method, the answer has those that are served.
func (c *call) route() (*operation, error) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	comp := strings.ToLower(c.query.Get("comp"))
	var allow []string
	for i := range served {
		op := &served[i]
		if op.kind != c.kind || op.comp != comp {
			continue
		}
		if op.method == method {
			return op, nil
		}
		allow = append(allow, op.method)
		if op.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	if allow != nil || comp == "" {
		return nil, errVerb.withHeader("Allow", strings.Join(allow, ", "))
	}
	return nil, badQuery(errQuery, "comp", c.query.Get("comp"), "The operation is not served.")
}

// unservedHeaders and unservedParameters ask for something that is not served. An operation that
// ignored one would be carried out in part.
var unservedHeaders = byCanonicalName(
	"x-ms-if-tags", "x-ms-source-if-tags", "x-ms-tags",
	"x-ms-encryption-key", "x-ms-encryption-scope", "x-ms-default-encryption-scope", "x-ms-structured-body",
	"x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode", "x-ms-legal-hold",
	"x-ms-copy-source-tag-option", "x-ms-seal-blob", "x-ms-rehydrate-priority",
	"x-ms-copy-source-authorization", "x-ms-expiry-option",
	"x-ms-source-content-md5", "x-ms-source-content-crc64", "x-ms-range-get-content-crc64",
)

func byCanonicalName(names ...string) map[string]string {
	m := map[string]string{}
	for _, name := range names {
		m[http.CanonicalHeaderKey(name)] = name
	}
	return m
}

var unservedParameters = []string{"versionid", "deletetype", "prevsnapshot", "startfrom", "showonly"}

func (c *call) refuseUnserved() error {
	var unserved []string
	for key := range c.r.Header {
		if name, ok := unservedHeaders[key]; ok && c.header(name) != "" {
			unserved = append(unserved, name)
		}
	}
	if unserved != nil {
		name := slices.Min(unserved) // not the one that comes first in a map
		return errHeader.with("HeaderName", name).with("HeaderValue", c.header(name))
	}
	for _, name := range unservedParameters {
		if v := c.query.Get(name); v != "" {
			return badQuery(errQuery, name, v, "The parameter is not served.")
		}
	}
	return nil
}
