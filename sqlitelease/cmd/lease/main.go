// Lease runs commands under leases, and shows and breaks leases. This program can only open SQLite files, so
// it is small and can be built quickly. The program in cmd/lease can open all kinds of stores.
//
//	lease run [-wait 1m] NAME -- COMMAND...
//
// The page docs/command.md of the repository describes this program.
package main

import (
	"github.com/fencedlease/lease/cli"
	_ "github.com/fencedlease/lease/sqlitelease"
)

func main() { cli.Main() }
