package sdktest

import (
	"slices"
	"strings"
	"time"
)

// A difference is a known difference between the double and Azurite, in which the double does what the
// service does. The tests fail if there is one that is not known, or if the example of a known one no longer
// shows it.
//
// There are four kinds of evidence: a recording of the service that Microsoft's SDK teams published (REC), a
// test of the SDK teams that runs against the service (TEST), documentation (DOC), and an issue that shows
// an answer of the service (ISS).
type difference struct {
	name     string
	evidence string
	example  []op // the last step shows the difference
	is       func(s step) bool
	parts    bool // the two sides are in different states afterward
	chance   bool // Azurite does not always show the difference
}

// A step is an op in a state, with the answers and the states afterward of both sides.
type step struct {
	op
	container    bool
	snapshots    bool   // the blob has snapshots
	state        string // of the double, before: available, ..., or absent
	ours, theirs answer
	left         [2]string     // the states afterward
	lag          time.Duration // the maximum time by which Azurite's clock is ahead of the double's
}

func (s step) lease() bool { return strings.Contains(s.target, "comp=lease") }

func (s step) codes(ours, theirs string) bool {
	return strings.HasPrefix(s.ours.code(), ours) && strings.HasPrefix(s.theirs.code(), theirs)
}

func (s step) same() bool { return s.ours.status == s.theirs.status && s.left[0] == s.left[1] }

var differences = []difference{
	{
		name: "over",
		evidence: "REC azure-sdk-for-python test_common_blob.test_lease_blob_with_duration (Expired), ..._break_period (Broken), " +
			"test_container.test_lease_container_break_period: LeaseLost. Azurite has its text under another code. TEST for released IDs: the text of LeaseLost.",
		example: []op{acquire(onBlob, "A", "15"), breaks(onBlob, "0"), put("A")},
		is:      func(s step) bool { return s.same() && s.codes("LeaseLost", "LeaseNotPresentWith") },
	},
	{
		name: "renew-by-another",
		evidence: "DOC: the lease can be renewed if the ID specified matches that associated with the blob; 409 in the published table. " +
			"Azurite's LeaseExpiredState.renew ignores the ID.",
		example: []op{acquire(onBlob, "A", "15"), wait(16), renew(onBlob, "B")},
		is: func(s step) bool {
			return s.verb == "renew" && s.state == "expired" && s.ours.code() == "LeaseIdMismatchWithLeaseOperation" && s.theirs.status == 200
		},
		parts: true,
	},
	{
		name:     "period-unchecked",
		evidence: "TEST: a period of 61 on an infinite lease is 400. DOC: between 0 and 60 seconds.",
		example:  []op{acquire(onBlob, "A", "-1"), breaks(onBlob, "61")},
		is: func(s step) bool {
			return s.verb == "break" && s.ours.code() == "InvalidHeaderValue" && (s.theirs.status == 202 || s.theirs.status == 409)
		},
		parts: true,
	},
	{
		name: "header-first",
		evidence: "DOC, for every state: a non-infinite lease can be between 15 and 60 seconds, and 400 for a header that is not in the correct format. " +
			"Azurite checks whether the blob exists, and for a conflict, first.",
		example: []op{acquire(onBlob, "A", "15"), acquire(onBlob, "B", "14")},
		is: func(s step) bool {
			return s.lease() && s.codes("InvalidHeaderValue", "") && slices.Contains([]string{"LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired", "BlobNotFound", "ContainerNotFound"}, s.theirs.code())
		},
	},
	{
		name:     "guid",
		evidence: "REC azure-sdk-for-js recording_acquirelease, recording_renewlease: an ID proposed in format N is answered in D, and both are the same ID.",
		example:  []op{acquire(onBlob, "n", "15")},
		is: func(s step) bool {
			return s.id == "n" && s.ours.header.Get("x-ms-lease-id") == idA || s.id == "n" && s.state != "available"
		},
		parts: true,
	},
	{
		name:     "lease-of-nothing",
		evidence: "DOC Put Blob, Copy Blob: 412 since 2013-08-15 if a lease ID is specified and the blob does not exist.",
		example:  []op{use("delete", "", "DELETE", "/blob", ""), put("A")},
		is: func(s step) bool {
			return s.state == "absent" && s.id != "" && s.ours.code() == "LeaseNotPresentWithBlobOperation" && s.theirs.status == 201
		},
		parts: true,
	},
	{
		name:     "lease-before-condition",
		evidence: "ISS Azurite#2637: the service answers LeaseIdMissing to a Put Blob with If-None-Match: * on a leased blob. Azurite evaluates conditions first.",
		example:  []op{acquire(onBlob, "A", "15"), putNew("")},
		is: func(s step) bool {
			return !s.lease() && s.ours.status == 412 && strings.HasPrefix(s.ours.code(), "Lease") && slices.Contains([]string{"ConditionNotMet", "BlobAlreadyExists"}, s.theirs.code())
		},
	},
	{
		name:     "condition-under-lease",
		evidence: "REC azure-sdk-for-python test_lease_blob_with_duration (hello 2), ISS azure-storage-net#38: If-None-Match: * is ignored with the ID of the lease in force.",
		example:  []op{acquire(onBlob, "A", "15"), putNew("A")},
		is: func(s step) bool {
			return s.verb == "put-new" && s.ours.status == 201 && s.theirs.code() == "BlobAlreadyExists"
		},
		parts: true,
	},
	{
		name: "block-beside-snapshot",
		evidence: "DOC Put Block: required if the blob has an active lease. Azurite knows it too (its test Block blob should refresh lease state), " +
			"but it finds the blob by its name only, and may find a snapshot, which has no lease.",
		example: []op{acquire(onBlob, "A", "15"), breaks(onBlob, "0"), use("snapshot", "", "PUT", "/blob?comp=snapshot", ""), block("")},
		is:      func(s step) bool { return s.verb == "block" && s.snapshots },
		parts:   true,
		chance:  true,
	},
}

// nameOf returns the known difference that a step shows.
func nameOf(s step) (difference, bool) {
	for _, d := range differences {
		if d.is(s) {
			return d, true
		}
	}
	return difference{}, false
}
