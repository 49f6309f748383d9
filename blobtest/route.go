package blobtest

import (
	"net/http"
	"slices"
	"strings"
)

// An operation describes a kind of request that the Handler serves. The fields method, kind and comp select
// the requests. The fields permissions, resourceType and listsBlobs say which shared access signatures permit
// the operation. A signature needs only one of the permissions.
type operation struct {
	method       string
	kind         kind
	comp         string
	permissions  string
	resourceType string // s, c or o, as in the signature of an account; if empty, it follows from the address
	listsBlobs   bool   // the signature of a container permits this operation, but no other on the container itself
	run          func(*call) (*reply, error)
}

// servedOperations lists the operations on accounts, containers and blobs. HEAD is served wherever GET is.
var servedOperations = []operation{
	{http.MethodGet, kindService, "list", "l", "s", false, listContainers},
	{http.MethodGet, kindSettings, "properties", "r", "s", false, getServiceProperties},
	{http.MethodGet, kindInformation, "properties", "rwdlacu", "", false, getAccountInformation},

	{http.MethodPut, kindContainer, "", "cw", "c", false, createContainer},
	{http.MethodGet, kindContainer, "", "r", "c", false, getContainer},
	{http.MethodDelete, kindContainer, "", "d", "c", false, deleteContainer},
	{http.MethodGet, kindContainer, "metadata", "r", "c", false, getContainer},
	{http.MethodPut, kindContainer, "metadata", "w", "c", false, setContainerMetadata},
	{http.MethodPut, kindContainer, "lease", "wd", "c", false, leaseResource},
	{http.MethodGet, kindContainer, "list", "l", "c", true, listBlobs},

	{http.MethodPut, kindBlob, "", "cw", "o", false, putBlobOrCopy},
	{http.MethodGet, kindBlob, "", "r", "o", false, getBlob},
	{http.MethodDelete, kindBlob, "", "d", "o", false, deleteBlob},
	{http.MethodGet, kindBlob, "metadata", "r", "o", false, getMetadata},
	{http.MethodPut, kindBlob, "metadata", "w", "o", false, setMetadata},
	{http.MethodPut, kindBlob, "properties", "w", "o", false, setProperties},
	{http.MethodPut, kindBlob, "lease", "wd", "o", false, leaseResource},
	{http.MethodPut, kindBlob, "snapshot", "cw", "o", false, snapshotBlob},
	{http.MethodPut, kindBlob, "block", "w", "o", false, putBlock},
	{http.MethodPut, kindBlob, "blocklist", "cw", "o", false, putBlockList},
	{http.MethodGet, kindBlob, "blocklist", "r", "o", false, getBlockList},
	{http.MethodPut, kindBlob, "copy", "w", "o", false, abortCopy},
}

// The method route returns the operation of the request. If the server does not serve this operation, route
// returns a failure. The header Allow of the failure lists the HTTP methods that the server does serve for
// this kind of resource with this value of the query parameter "comp".
func (c *call) route() (*operation, error) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	comp := strings.ToLower(c.query.Get("comp"))
	var allow []string
	for i := range servedOperations {
		op := &servedOperations[i]
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

// unservedHeaders and unservedParameters belong to features that the Handler does not support. The Handler
// refuses requests that contain one of them, because it could execute such a request only in part.
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
		name := slices.Min(unserved) // the least name, because the order of a map is random
		return errHeader.with("HeaderName", name).with("HeaderValue", c.header(name))
	}
	for _, name := range unservedParameters {
		if v := c.query.Get(name); v != "" {
			return badQuery(errQuery, name, v, "The parameter is not served.")
		}
	}
	return nil
}
