package leasetest

import (
	"context"
	"math/bits"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// An Ability is a set of things that an implementation can do. A correct implementation need not be
// able to do all of them.
//
// The suite finds out by itself which methods an implementation has, such as Watch or Close, and
// which hooks [Options] has, such as Reopen. The abilities below are those that it cannot find out.
type Ability uint64

const (
	// Of stores and authorities.

	CanTellTime         Ability = 1 << iota // it has a clock: Snapshot.Uncertainty is at most the tick of that clock
	CanBreak                                // it carries out lease.ActionBreak, with and without a period
	CanChange                               // it carries out lease.ActionChange
	CanUse                                  // it carries out lease.ActionWrite, and lease.ActionRead with an ID
	CanBeInfinite                           // it grants leases of infinite duration
	CanServeOldVersions                     // it serves requests of versions before 2012-02-12
	CanShowRecords                          // its results and lists show the whole record, with the ID and the time left, also beside a refusal

	// Of leases.

	CanUseAuthority // it sends every request to Holder.Authority
	CanUseClock     // it reads the time from Holder.Clock
	CanTakeOver     // it does what Holder.TakeOver says

	declared = iota // how many abilities Options.Can declares
)

// Everything is all abilities that [Options.Can] can declare.
const Everything Ability = 1<<declared - 1

// The abilities that the suite finds out by itself.
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

	// What follows from the others.

	exactTime   // the suite can hit an instant: Slack is zero, and the implementation tells the time
	noLimits    // Options.Limits is zero: any duration and any period is granted
	shortLeases // leases may be shorter than the 15 seconds of most vectors
	canCut      // a holder can be cut off from its authority: CanUseAuthority, or Options.Cut
	canRevoke   // a third party can break a lease: CanUseAuthority and CanBreak, or Options.Revoke
	canStall    // a holder can be kept from renewing: canCut, or CanUseClock
	canLose     // a holder can be made to lose its lease: canStall, or canRevoke

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

// String lists the names of the abilities, such as "CanBreak, CanChange".
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

// The methods of a session.Session that package lease has no interface for.
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

// methodsOf returns the abilities that v has by its methods.
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
