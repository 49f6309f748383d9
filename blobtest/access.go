package blobtest

import (
	"strings"

	"github.com/fencedlease/lease"
)

// access holds the permissions of a client.
type access struct {
	all         bool          // the client has the key of the account, or Options.AllowAnyone is set
	permissions string        // the letters of a shared access signature
	version     lease.Version // the version of the signature
}

func (a access) any(letters string) bool { return a.all || strings.ContainsAny(a.permissions, letters) }

// mayBreak reports whether the client may break a lease. The documentation says: "For version
// 2017-07-29 and later, the Delete permission also allows breaking a lease on a blob."
func (a access) mayBreak() bool {
	return a.any("w") || a.version >= versionDeleteBreaks && a.any("d")
}

// mayReplace reports whether the client may overwrite a blob. The permission c only allows creating one.
func (a access) mayReplace() bool { return a.any("w") }

// These failures answer requests that are not authorized.
var (
	errNoAuthentication = (&failure{status: 401, code: "NoAuthenticationInformation", text: "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."}).withHeader("WWW-Authenticate", "SharedKey")
	errAuthentication   = &failure{status: 403, code: "AuthenticationFailed", text: "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."}
	errAuthHeader       = &failure{status: 400, code: "InvalidAuthenticationInfo", text: "The authentication information was not provided in the correct format. Verify the value of Authorization header."}
	errPermission       = &failure{status: 403, code: "AuthorizationPermissionMismatch", text: "This request is not authorized to perform this operation using this permission."}
	errOverwrite        = &failure{status: 403, code: "UnauthorizedBlobOverwrite", text: "This request is not authorized to perform blob overwrites."}
	errServiceScope     = &failure{status: 403, code: "AuthorizationServiceMismatch", text: "This request is not authorized to perform this operation using this service."}
	errResourceScope    = &failure{status: 403, code: "AuthorizationResourceTypeMismatch", text: "This request is not authorized to perform this operation using this resource type."}
	errProtocolScope    = &failure{status: 403, code: "AuthorizationProtocolMismatch", text: "This request is not authorized to perform this operation using this protocol."}
	errSourceScope      = &failure{status: 403, code: "AuthorizationSourceIPMismatch", text: "This request is not authorized to perform this operation using this source IP."}
	errAccountScope     = &failure{status: 403, code: "AuthorizationFailure", text: "This request is not authorized to perform this operation."}
)

// admit authorizes the request. If the request is not authorized, it returns a *failure with the reason. A
// shared access signature is accepted if it grants at least one of the permissions in op.permissions.
func (c *call) admit(op *operation) error {
	if c.o.AllowAnyone {
		c.access = access{all: true}
		return nil
	}
	switch {
	case c.header("Authorization") != "":
		return c.admitSharedKey()
	case c.query.Get("sig") != "":
		return c.admitSignature(op)
	}
	return errNoAuthentication
}

func unauthenticated(detail string) *failure {
	return errAuthentication.with("AuthenticationErrorDetail", detail)
}
