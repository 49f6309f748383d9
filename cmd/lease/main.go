// Lease runs commands under leases, and shows and breaks leases. This program can open all kinds of stores.
//
//	lease run [-wait 1m] NAME -- COMMAND...
//
// The page docs/command.md of the repository describes this program.
package main

import (
	"github.com/redis/go-redis/v9/logging"

	_ "github.com/fencedlease/lease/azlease"
	"github.com/fencedlease/lease/cli"
	_ "github.com/fencedlease/lease/etcdlease"
	_ "github.com/fencedlease/lease/kubelease"
	_ "github.com/fencedlease/lease/mysqllease"
	_ "github.com/fencedlease/lease/natslease"
	_ "github.com/fencedlease/lease/pglease"
	_ "github.com/fencedlease/lease/redislease"
	_ "github.com/fencedlease/lease/s3lease"
	_ "github.com/fencedlease/lease/sqlitelease"
)

func main() {
	logging.Disable() // otherwise go-redis prints each failed connection, in addition to the error that cli prints
	cli.Main()
}
