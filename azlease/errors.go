package azlease

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// An sdkError is an error of the SDK with another text. Its Unwrap returns the error of the SDK, so that
// bloberror.HasCode works.
type sdkError struct {
	text string
	err  error
}

func (e *sdkError) Error() string { return e.text }
func (e *sdkError) Unwrap() error { return e.err }

// The keys of this map are the error codes of the service that no retry can overcome. The value of each key
// says how to remove the cause of the error.
var advice = map[string]string{
	codeContainerNotFound:               "the container does not exist: create it",
	"ContainerBeingDeleted":             "the container is being deleted: create it again, or use another",
	"AuthenticationFailed":              "the credential is not accepted: check the key or the signature, its dates, and the clock of this machine",
	"InvalidAuthenticationInfo":         "the credential is not accepted: check the token or the signature",
	"NoAuthenticationInformation":       "the client has no credential: make it with one",
	"AuthorizationFailure":              needs,
	"AuthorizationPermissionMismatch":   needs,
	"AuthorizationResourceTypeMismatch": needs,
	"AuthorizationServiceMismatch":      needs,
	"AuthorizationSourceIPMismatch":     "the signature is not valid for the address of this machine",
	"AuthorizationProtocolMismatch":     "the signature is not valid for this protocol: use HTTPS",
	"InsufficientAccountPermissions":    needs,
	"AccountIsDisabled":                 "the account is disabled",
	"BlobImmutableDueToPolicy":          "the blob is immutable, so no token can be written: use a container without such a policy",
	"BlobArchived":                      "the blob is archived: no lease can be kept on it before it is rehydrated",
	"BlobBeingRehydrated":               "the blob is archived: no lease can be kept on it before it is rehydrated",
	"InvalidBlobType":                   "the blob is of a kind that cannot be written so: use another name",
	"InvalidResourceName":               "the service does not accept the name",
	"MetadataTooLarge":                  "the blob has so much metadata that a grant does not fit: remove some",
	"InvalidOperation":                  "the blob cannot be leased, as a snapshot cannot: use another name",
	"ResourceTypeMismatch":              "a folder has this name: use another",
	"UnsupportedHeader":                 "the account does not support this: use a general-purpose account",
	"FeatureVersionMismatch":            "the account does not support this: use a general-purpose account",
}

const needs = "the credential needs the actions blobs/read and blobs/write, as the role Storage Blob Data Contributor has them, or a signature with the permissions r and w of the container, and l to list"

// describeError returns an error that names the failed operation and its blob, and says how to fix the
// problem. If no retry can succeed, the error is permanent: see [lease.Permanent]. If err is an error of the
// context or has a [lease.Code], describeError returns err itself.
func describeError(what, address string, err error) error {
	address, _, _ = strings.Cut(address, "?") // the query can contain a signature, which must not be logged
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		var sent *url.Error // its text contains the query, even if a network timeout caused the error
		if !errors.As(err, &sent) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			return err
		}
		if lease.CodeOf(err) != 0 {
			return err
		}
		return &sdkError{fmt.Sprintf("azlease: %s %s: no answer: %s; check the address of the account, the network and the firewall of the account", what, address, withoutQuery(err)), err}
	}
	text := fmt.Sprintf("azlease: %s %s: the service answered %d %s", what, address, answer.StatusCode, answer.ErrorCode)
	do, permanent := advice[answer.ErrorCode]
	if !permanent && (answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized) {
		do, permanent = needs, true
	}
	return engine.WithAdvice(&sdkError{text, err}, do, permanent)
}

// withoutQuery returns the text of err without the query of a URL, because the query can contain a signature.
func withoutQuery(err error) string {
	var failed *url.Error
	if errors.As(err, &failed) {
		address, _, _ := strings.Cut(failed.URL, "?")
		return fmt.Sprintf("%s %q: %v", failed.Op, address, failed.Err)
	}
	return err.Error()
}

// withoutRefusal removes the [lease.Code] from a refusal, and returns any other error unchanged. Call it for
// the second request of an operation: if the service refuses only the second request, Do must not report a
// refusal, because the service has already carried out the first request.
func withoutRefusal(err error) error {
	if lease.CodeOf(err).Refusal() {
		return errors.New(err.Error())
	}
	return err
}

// The service sends these error codes whatever the state of the lease is.
const (
	codeBlobNotFound      = "BlobNotFound"
	codeBlobAlreadyExists = "BlobAlreadyExists"
	codeConditionNotMet   = "ConditionNotMet"
	codeContainerNotFound = "ContainerNotFound"
)

// refusalCodes maps the error codes of the service that depend on the state of the lease to the codes that Do
// returns.
var refusalCodes = map[string]lease.Code{
	"LeaseAlreadyPresent":                lease.ErrHeldByOther,
	"LeaseIsBreakingAndCannotBeAcquired": lease.ErrBreaking,
	"LeaseIsBreakingAndCannotBeChanged":  lease.ErrBreaking,
	"LeaseIsBrokenAndCannotBeRenewed":    lease.ErrBroken,
	"LeaseIdMismatchWithLeaseOperation":  lease.ErrIDMismatch,
	"LeaseNotPresentWithLeaseOperation":  lease.ErrNotPresent,
	"LeaseIdMissing":                     lease.ErrIDMissing,
	"LeaseIdMismatchWithBlobOperation":   lease.ErrIDMismatch,
	"LeaseNotPresentWithBlobOperation":   lease.ErrNotPresent,
	"LeaseLost":                          lease.ErrEnded,
}

// codesWithoutBlob contains, for each action, the Code that Do returns if the blob does not exist. It is the
// Code for a lease that was never granted. Do does not refuse a read or a write without a lease ID.
var codesWithoutBlob = map[lease.Action]lease.Code{
	lease.ActionRenew:   lease.ErrIDMismatch,
	lease.ActionRelease: lease.ErrIDMismatch,
	lease.ActionChange:  lease.ErrNotPresent,
	lease.ActionBreak:   lease.ErrNotPresent,
	lease.ActionRead:    lease.ErrNotPresent,
	lease.ActionWrite:   lease.ErrNotPresent,
}

// serviceCode returns the error code in the answer of the service, or "" if err has none.
func serviceCode(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return ""
}

// refusalOf returns the Code of a refusal. The parameter err is the answer to the action a. If err is not a
// refusal, refusalOf returns 0.
func refusalOf(a lease.Action, err error) lease.Code {
	code := serviceCode(err)
	if code == codeBlobNotFound {
		return codesWithoutBlob[a]
	}
	return refusalCodes[code]
}
