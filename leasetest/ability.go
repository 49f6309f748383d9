package leasetest

import (
	"math/bits"
	"strings"
)

// An Ability is a set of things that an implementation may lack and still be a correct one.
type Ability uint32

const (
	// Of stores and authorities.

	OwnClock   Ability = 1 << iota // it tells the time itself: Snapshot.Lag is zero
	Watching                       // it is a lease.Watcher
	Durable                        // what it acknowledged survives Options.Reopen
	Forgetting                     // Options.Forget makes it forget idle records
	Breaking                       // lease.Break, with a period
	Changing                       // lease.Change
	Using                          // lease.Read and lease.Write with and without an ID
	Infinite                       // leases of infinite duration
	Dialects                       // versions before 2012-02-12
	Disclosing                     // results show the whole record, refusals included

	// Of leases.

	Injecting  // it holds over Holder.Authority, so that the suite can come between
	Clocks     // it takes Holder.Clock
	Tokens     // it is a lease.TokenAcquirer
	TakingOver // Holder.TakeOver
	HandingOver
	Warning // OnBreaking
	Waiting // it is a lease.Waiter
	Closing // Close
	Binding // WhileHeld, bound to the incarnation

	// exact is time that stands still between calls: instants can be hit.
	exact

	// short are leases of less than the 15 seconds that the vectors keep to otherwise.
	short

	abilities = iota
)

var abilityNames = [abilities]string{
	"own clock", "watching", "durable", "forgetting", "breaking", "changing", "using", "infinite", "dialects", "disclosing",
	"injecting", "clocks", "tokens", "taking over", "handing over", "warning", "waiting", "closing", "binding",
	"exact time", "short leases",
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
