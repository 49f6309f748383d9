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

// refusals lists the error codes that depend on the state of the lease, each with its Code.
var refusals = map[string]lease.Code{
	"LeaseAlreadyPresent":                lease.ErrHeldByOther,
	"LeaseIsBreakingAndCannotBeAcquired": lease.ErrBreaking,
	"LeaseIsBreakingAndCannotBeChanged":  lease.ErrBreaking,
	"LeaseIsBrokenAndCannotBeRenewed":    lease.ErrBroken,
	"LeaseIdMismatchWithLeaseOperation":  lease.ErrIDMismatch,
	"LeaseNotPresentWithLeaseOperation":  lease.ErrNotPresent,
	"LeaseIdMissing":                     lease.ErrIDMissing,
	"LeaseIdMismatchWithBlobOperation":   lease.ErrIDMismatch,
	"LeaseNotPresentWithBlobOperation":   lease.ErrNotPresent,
	"LeaseLost":                          lease.ErrOver,
}

// withoutBlob lists how each action is refused if the blob does not exist. A lease without a blob was
// never granted.
var withoutBlob = map[lease.Action]lease.Code{
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

// refusal returns the Code for the answer to the first request of an action. It returns 0 if the
// answer is not a refusal.
func refusal(a lease.Action, err error) lease.Code {
	code := serviceCode(err)
	if code == codeBlobNotFound {
		return withoutBlob[a]
	}
	return refusals[code]
}
