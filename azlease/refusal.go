package azlease

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

// These error codes of the service do not depend on the state of the lease.
const (
	codeBlobNotFound      = "BlobNotFound"
	codeBlobAlreadyExists = "BlobAlreadyExists"
	codeConditionNotMet   = "ConditionNotMet"
	codeContainerNotFound = "ContainerNotFound"
)

// refusalCodes maps those error codes of the service that depend on the state of the lease to Codes.
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

// codesWithoutBlob maps each action to the Code with which Do refuses it if the blob does not exist. The
// Codes are those for a lease that was never granted. Do still grants a read or a write that has no lease ID.
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

// refusalOf returns the Code of a refusal, or 0 if err, the answer to the action a, is not a refusal.
func refusalOf(a lease.Action, err error) lease.Code {
	code := serviceCode(err)
	if code == codeBlobNotFound {
		return codesWithoutBlob[a]
	}
	return refusalCodes[code]
}
