// Lease runs commands under leases, and shows and breaks leases. This program knows only file:PATH, so it is
// small and built soon; that in cmd/lease has the stores of all engines.
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
