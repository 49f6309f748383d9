package blobtest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
)

// A kind is a kind of resource. Some texts and error codes of the service name the kind.
type kind int

const (
	kindService     kind = iota // the account
	kindSettings                // the properties of the service
	kindInformation             // the description of the account
	kindContainer
	kindBlob
)

func (k kind) String() string {
	return [...]string{"service", "settings", "information", "container", "blob"}[k]
}

// An outcome is the answer of the service to some of the requests that the authority refuses. The fields
// named actions, states and code select the refusals that get this answer. The symbol * stands for the kind
// of the resource: Blob or Container in the field called name, and blob or container in the field called
// text.
type outcome struct {
	actions []lease.Action // nil: any
	states  []lease.State  // nil: any
	code    lease.Code     // 0: any
	status  int
	name    string
	text    string
	header  string // the header that the answer names
}

var (
	operations = []lease.Action{lease.ActionAcquire, lease.ActionRenew, lease.ActionChange, lease.ActionRelease, lease.ActionBreak}
	uses       = []lease.Action{lease.ActionRead, lease.ActionWrite}
)

// outcomes is the table of the answers to refused requests. A refusal gets the answer of the first row that
// matches, and the last row matches every refusal. The status is 409 if the state of the lease does not allow
// a lease operation, and 412 if the lease does not admit a read or a write.
var outcomes = []outcome{
	{only(lease.ActionAcquire), nil, lease.ErrHeldByOther, 409, "LeaseAlreadyPresent", "There is already a lease present.", ""},
	{only(lease.ActionAcquire), nil, lease.ErrBreaking, 409, "LeaseIsBreakingAndCannotBeAcquired", "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.", ""},
	{only(lease.ActionChange), nil, lease.ErrBreaking, 409, "LeaseIsBreakingAndCannotBeChanged", "The lease ID matched, but the lease is currently in breaking state and cannot be changed.", ""},
	{only(lease.ActionRenew), nil, lease.ErrBroken, 409, "LeaseIsBrokenAndCannotBeRenewed", "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.", ""},
	{only(lease.ActionBreak), nil, lease.ErrAlreadyBroken, 409, "LeaseAlreadyBroken", "The lease has already been broken and cannot be broken again.", ""},
	{operations, nil, lease.ErrIDMismatch, 409, "LeaseIdMismatchWithLeaseOperation", "The lease ID specified did not match the lease ID for the *.", ""},
	{operations, nil, lease.ErrNotPresent, 409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the *.", ""},

	{uses, nil, lease.ErrIDMismatch, 412, "LeaseIdMismatchWith*Operation", "The lease ID specified did not match the lease ID for the *.", ""},
	{uses, nil, lease.ErrIDMissing, 412, "LeaseIdMissing", "There is currently a lease on the * and no lease ID was specified in the request.", ""},
	{uses, nil, lease.ErrNotPresent, 412, "LeaseNotPresentWith*Operation", "There is currently no lease on the *.", ""},
	{uses, nil, lease.ErrEnded, 412, "LeaseLost", "A lease ID was specified, but the lease for the * has expired.", ""},

	{nil, nil, lease.ErrAction, 400, errInvalidHeader.code, errInvalidHeader.text, headerAction},
	{nil, nil, lease.ErrVersion, 400, errInvalidHeader.code, errInvalidHeader.text, headerVersion},
	{nil, nil, lease.ErrID, 400, errInvalidHeader.code, errInvalidHeader.text, headerID},
	{nil, nil, lease.ErrProposed, 400, errInvalidHeader.code, errInvalidHeader.text, headerProposed},
	{nil, nil, lease.ErrDuration, 400, errInvalidHeader.code, errInvalidHeader.text, headerDuration},
	{nil, nil, lease.ErrPeriod, 400, errInvalidHeader.code, errInvalidHeader.text, headerPeriod},
	{nil, nil, lease.ErrOwner, 400, errInvalidHeader.code, errInvalidHeader.text, headerOwner},
	{nil, nil, lease.ErrName, 400, errResourceName.code, errResourceName.text, ""},

	{nil, nil, 0, 500, errInternal.code, errInternal.text, ""},
}

// publishedOutcomes contains the rows of the documented table that differ from the behavior of the service.
// In these rows, the answer to a wrong ID has the status 409.
var publishedOutcomes = []outcome{
	{uses, []lease.State{lease.Leased}, lease.ErrIDMismatch, 409, "LeaseIdMismatchWith*Operation", "The lease ID specified did not match the lease ID for the *.", ""},
	{only(lease.ActionRead), []lease.State{lease.Breaking}, lease.ErrIDMismatch, 409, "LeaseIdMismatchWith*Operation", "The lease ID specified did not match the lease ID for the *.", ""},
}

func only(a lease.Action) []lease.Action { return []lease.Action{a} }

func (o *outcome) matches(a lease.Action, s lease.State, c lease.Code) bool {
	isAction := o.actions == nil || slices.Contains(o.actions, a)
	isState := o.states == nil || slices.Contains(o.states, s)
	isCode := o.code == 0 || o.code == c
	return isAction && isState && isCode
}

// outcomeOf returns the first row that matches the action, the state of the lease and the Code of a refusal.
func outcomeOf(table []outcome, a lease.Action, s lease.State, c lease.Code) outcome {
	i := slices.IndexFunc(table, func(o outcome) bool { return o.matches(a, s, c) })
	return table[i]
}

// toFailure returns the failure that the outcome describes. It replaces the symbol * with the given kind.
func (o *outcome) toFailure(k kind, r *http.Request) *failure {
	name := k.String()
	f := &failure{
		status: o.status,
		code:   strings.Replace(o.name, "*", strings.ToUpper(name[:1])+name[1:], 1),
		text:   strings.Replace(o.text, "*", name, 1),
	}
	if o.header != "" {
		f = f.with("HeaderName", o.header).with("HeaderValue", headerOf(r, o.header))
	}
	return f
}

// refused converts a refusal of the authority to a failure. An error without a Code is returned unchanged.
func (c *call) refused(a lease.Action, res lease.Result, err error) error {
	code := lease.CodeOf(err)
	if code == 0 {
		return err
	}
	state := lease.Leased // the most likely state, if the authority returned no record
	if !res.Now.IsZero() {
		state = res.Record.At(res.Now).State
	}
	o := outcomeOf(c.outcomes, a, state, code)
	return o.toFailure(c.kind, c.r)
}
