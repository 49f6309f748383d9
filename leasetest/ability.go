package leasetest

import (
	"math/bits"
	"strings"
)

// An Ability is a set of things that an implementation may lack and still be a correct one.
type Ability uint32

const (
	// Of stores and authorities.

	OwnClock   Ability = 1 << iota // it tells the time itself: Snapshot.Uncertainty is zero, or the tick of its clock
	Watching                       // it is a lease.Watcher
	Durable                        // what it acknowledged survives Options.Reopen
	Forgetting                     // Options.Forget makes it forget idle records
	Breaking                       // lease.ActionBreak, with a period
	Changing                       // lease.ActionChange
	Using                          // lease.ActionRead and lease.ActionWrite with and without an ID
	Infinite                       // leases of infinite duration
	Dialects                       // versions before 2012-02-12
	Disclosing                     // results show the whole record, refusals included
	Listing                        // it is a lease.Lister

	// Of leases.

	Injecting  // it holds over Holder.Authority, so that the suite can come between
	Clocks     // it takes Holder.Clock
	Tokens     // it is a lease.TokenAcquirer
	TakingOver // Holder.TakeOver
	HandingOver
	Warning    // OnBreaking
	Waiting    // it is a lease.Waiter
	Closing    // Close
	Binding    // WhileHeld, bound to the incarnation
	Confirming // LastConfirmed: when what is believed was last heard of

	// What follows from the others and from the rest of Options.

	exact    // time stands still between calls, without Slack: instants can be hit
	short    // leases of less than the 15 seconds that the vectors keep to otherwise
	cutting  // a holder can be cut off: Injecting, or Options.Cut
	revoking // a lease can be broken behind its holder's back: Injecting and Breaking, or Options.Revoke
	stalling // a holder can be kept from renewing: cutting, or Clocks
	losing   // a holder can be made to lose what it has: stalling, or revoking

	corrupting // a record can be spoilt: Options.Corrupt
	sharing    // a store can have a second client: Options.Another

	abilities = iota
)

var abilityNames = [abilities]string{
	"own clock", "watching", "durable", "forgetting", "breaking", "changing", "using", "infinite", "dialects", "disclosing", "listing",
	"injecting", "clocks", "tokens", "taking over", "handing over", "warning", "waiting", "closing", "binding", "confirming",
	"exact time", "short leases", "Injecting or Options.Cut", "Injecting and Breaking, or Options.Revoke", "Injecting, Clocks or Options.Cut",
	"Injecting, Clocks, Options.Cut or Options.Revoke", "Options.Corrupt",
	"Options.Another",
}

// String lists the names of the abilities, such as "watching, durable".
func (a Ability) String() string {
	if a == 0 {
		return "nothing"
	}
	var names []string
	for ; a != 0; a &= a - 1 {
		if i := bits.TrailingZeros32(uint32(a)); i < abilities {
			names = append(names, abilityNames[i])
		} else {
			names = append(names, "unknown")
		}
	}
	return strings.Join(names, ", ")
}
