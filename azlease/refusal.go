package azlease

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/fencedlease/lease"
)

// Codes of the service that are no refusals of a lease.
const (
	codeBlobNotFound      = "BlobNotFound"
	codeBlobAlreadyExists = "BlobAlreadyExists"
	codeConditionNotMet   = "ConditionNotMet"
	codeContainerNotFound = "ContainerNotFound"
)

// refusals are the codes with which the service refuses a request because of the state of the lease.
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

// withoutBlob are the refusals of a request about a blob that does not exist, which is a lease that
// nobody ever had.
var withoutBlob = map[lease.Action]lease.Code{
	lease.ActionRenew:   lease.ErrIDMismatch,
	lease.ActionRelease: lease.ErrIDMismatch,
	lease.ActionChange:  lease.ErrNotPresent,
	lease.ActionBreak:   lease.ErrNotPresent,
	lease.ActionRead:    lease.ErrNotPresent,
	lease.ActionWrite:   lease.ErrNotPresent,
}

// serviceCode returns the error code with which the service answered, or "".
func serviceCode(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	return ""
}

// refusal returns the Code for the answer of the service to the first request of an action, or 0 if the
// answer is no refusal.
func refusal(a lease.Action, err error) lease.Code {
	code := serviceCode(err)
	if code == codeBlobNotFound {
		return withoutBlob[a]
	}
	return refusals[code]
}
