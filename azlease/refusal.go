package azlease

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

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
