package leasetest

import (
	"maps"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
)

// authorityCellBugs are a bug for each state, each request in it, and each fault that can happen to it.
func authorityCellBugs() (all []cellBug) {
	for _, state := range matrixStates {
		for _, request := range slices.Sorted(maps.Keys(matrixRequests)) {
			if strings.Contains(request, "(A)") && state == "available" {
				continue // nobody is the last holder
			}
			granted := slices.Contains(strings.Fields(matrixRequests[request]), state)
			for _, fault := range authorityFaults {
				if fault.grant != granted || withoutEffect(state, request, fault.what) {
					continue
				}
				bug := func(a *wrappedAuthority, c *asked) (lease.Result, error) {
					if c.req.Version != 0 || stateName(c.was) != state || requestName(c.req, c.was) != request {
						return c.do()
					}
					return fault.bug(a, c)
				}
				all = append(all, cellBug{"authority", state + " " + request, fault.what, func() *suite { return wrappedAuthorities(bug) }})
			}
		}
	}
	return all
}

// withoutEffect reports whether a fault changes nothing in a cell, or only what nobody may look at.
func withoutEffect(state, request, fault string) bool {
	locks := strings.HasPrefix(request, "acquire") || strings.HasPrefix(request, "renew")
	keeps := strings.HasPrefix(request, "read") || strings.HasPrefix(request, "write (") || strings.HasPrefix(request, "change")
	ends := locks && state != "infinite" || keeps && (state == "leased" || state == "breaking") ||
		strings.HasPrefix(request, "break") && (state == "leased" && request != "break now" || state == "infinite" && request == "break later" || state == "breaking" && request != "break now")
	known := locks || strings.HasPrefix(request, "change") || strings.HasPrefix(request, "break") || strings.HasPrefix(request, "release") || keeps && state != "available"
	switch fault {
	case "lasts longer", "lasts shorter", "says that too much is certain":
		return !ends && !(strings.HasPrefix(request, "acquire") && state == "infinite")
	case "changes the owner", "changes the duration":
		return !known || request == "write" || fault == "changes the duration" && state == "infinite" && !strings.HasPrefix(request, "acquire")
	case "lowers the epoch":
		return state == "available" && !locks
	case "is carried out under a done context":
		return keeps && !strings.HasPrefix(request, "change (A)") || request == "write" && state == "available" || strings.HasPrefix(request, "break") && (state == "broken" || state == "breaking" && request == "break") ||
			request == "renew (A)" && state == "infinite"
	case "is refused, and forgets the lease":
		return state == "available"
	}
	return false
}
