// Lease runs commands under leases, and shows and breaks leases. This program opens only file:PATH, so it is
// small and can be built quickly. The program in cmd/lease has all stores.
//
//	lease run [-wait 1m] NAME -- COMMAND...
//
// Page docs/command.md of the repository describes it.
package main

import (
	"github.com/fencedlease/lease/cli"
	_ "github.com/fencedlease/lease/sqlitelease"
)

func main() { cli.Main() }
