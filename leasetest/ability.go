package leasetest

import (
	"context"
	"math/bits"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// An Ability is a set of abilities of an implementation. A correct implementation does not need all
// abilities.
//
// The suite detects which optional methods an implementation has, such as Watch or Close. It also
// detects which functions are set in [Options], such as Reopen. The constants below are abilities
// that the suite cannot detect.
type Ability uint64

const (
	// These are abilities of stores and authorities.

	CanTellTime         Ability = 1 << iota // has a clock: Snapshot.Uncertainty is at most its tick
	CanBreak                                // supports lease.ActionBreak, with and without a period
	CanChange                               // supports lease.ActionChange
	CanUse                                  // supports lease.ActionWrite, and lease.ActionRead with an ID
	CanBeInfinite                           // grants leases of infinite duration
	CanServeOldVersions                     // supports requests of versions before 2012-02-12
	CanShowRecords                          // returns complete records with results, refusals and lists

	// These are abilities of leases.

	CanUseAuthority // sends every request to Holder.Authority
	CanUseClock     // reads the time from Holder.Clock
	CanTakeOver     // takes over a lease if Holder.TakeOver is set

	declared = iota // the number of abilities that Options.Can can declare
)

// Everything is the set of all abilities that [Options.Can] can contain.
const Everything Ability = 1<<declared - 1

// These constants are abilities that the suite detects.
const (
	// Methods.

	hasWatch         Ability = 1 << (declared + iota) // lease.Watcher
	hasList                                           // lease.Lister
	hasToken                                          // lease.TokenAcquirer
	hasWait                                           // lease.Waiter
	hasHandOver                                       // HandOver and ID
	hasOnBreaking                                     // OnBreaking
	hasClose                                          // Close
	hasWhileHeld                                      // WhileHeld
	hasLastConfirmed                                  // LastConfirmed

	// Hooks of Options.

	hasReopen
	hasReopenAuthority
	hasAnother
	hasAnotherAuthority
	hasForget
	hasCorrupt

	// The suite derives these abilities from other abilities and from Options.

	exactTime   // Slack is zero and the implementation has a clock, so that all times are exact
	noLimits    // Options.Limits is zero, so that every duration and every period is granted
	shortLeases // leases may be shorter than 15 seconds, the duration in most vectors
	canCut      // the suite can cut a holder off from its authority, with CanUseAuthority or Options.Cut
	canRevoke   // the suite can break a lease, with CanUseAuthority and CanBreak, or with Options.Revoke
	canStall    // the suite can prevent renewals, with canCut or CanUseClock
	canLose     // the suite can make a holder lose its lease, with canStall or canRevoke

	abilities = declared + iota
)

const methods = hasWatch | hasList | hasToken | hasWait | hasHandOver | hasOnBreaking | hasClose | hasWhileHeld | hasLastConfirmed

var abilityNames = [abilities]string{
	"CanTellTime", "CanBreak", "CanChange", "CanUse", "CanBeInfinite", "CanServeOldVersions", "CanShowRecords",
	"CanUseAuthority", "CanUseClock", "CanTakeOver",
	"a method Watch", "a method List", "a method AcquireWithToken", "a method Wait", "the methods HandOver and ID",
	"a method OnBreaking", "a method Close", "a method WhileHeld", "a method LastConfirmed",
	"Options.Reopen", "Options.ReopenAuthority", "Options.Another", "Options.AnotherAuthority", "Options.Forget", "Options.Corrupt",
	"exact time", "no limits", "leases shorter than 15 s", "CanUseAuthority or Options.Cut",
	"CanUseAuthority and CanBreak, or Options.Revoke", "CanUseAuthority, CanUseClock or Options.Cut",
	"CanUseAuthority, CanUseClock, Options.Cut or Options.Revoke",
}

// String returns the names of the abilities in a, separated by commas, such as "CanBreak,
// CanChange".
func (a Ability) String() string {
	if a == 0 {
		return "nothing"
	}
	var names []string
	for ; a != 0; a &= a - 1 {
		if i := bits.TrailingZeros64(uint64(a)); i < abilities {
			names = append(names, abilityNames[i])
		} else {
			names = append(names, "unknown")
		}
	}
	return strings.Join(names, ", ")
}

// Package lease defines no interfaces for these methods of a session.Session.
type (
	handOverer interface {
		HandOver(ctx context.Context, to lease.ID) error
		ID() lease.ID
	}
	breakNotifier interface {
		OnBreaking(f func(until time.Time)) (stop func() bool)
	}
	closer interface {
		Close(ctx context.Context) error
	}
	contextBinder interface {
		WhileHeld(ctx context.Context) (context.Context, context.CancelFunc)
	}
	confirmer interface {
		LastConfirmed() (time.Time, bool)
	}
)

// methodsOf returns the abilities that the type of v has because of its methods.
func methodsOf(v any) (found Ability) {
	for ability, has := range map[Ability]bool{
		hasWatch: is[lease.Watcher](v), hasList: is[lease.Lister](v), hasToken: is[lease.TokenAcquirer](v), hasWait: is[lease.Waiter](v),
		hasHandOver: is[handOverer](v), hasOnBreaking: is[breakNotifier](v), hasClose: is[closer](v),
		hasWhileHeld: is[contextBinder](v), hasLastConfirmed: is[confirmer](v),
	} {
		if has {
			found |= ability
		}
	}
	return found
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// derived returns the abilities that follow from the options.
func (o *Options) derived() (found Ability) {
	cut := o.can(CanUseAuthority) || o.Cut != nil
	revoke := o.can(CanUseAuthority|CanBreak) || o.Revoke != nil
	stall := cut || o.can(CanUseClock)
	for ability, there := range map[Ability]bool{
		hasReopen: o.Reopen != nil, hasReopenAuthority: o.ReopenAuthority != nil,
		hasAnother: o.Another != nil, hasAnotherAuthority: o.AnotherAuthority != nil,
		hasForget: o.Forget != nil, hasCorrupt: o.Corrupt != nil,
		exactTime: o.Slack == 0 && o.can(CanTellTime), noLimits: o.Limits == lease.Limits{}, shortLeases: o.Limits.MinDuration <= 1,
		canCut: cut, canRevoke: revoke, canStall: stall, canLose: stall || revoke,
	} {
		if there {
			found |= ability
		}
	}
	return found
}
