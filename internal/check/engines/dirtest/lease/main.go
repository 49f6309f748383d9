//go:build linux

// Lease is the command lease for leases in a directory.
package main

import (
	"github.com/fencedlease/lease/cli"
	_ "github.com/fencedlease/lease/examples/dirlease"
)

func main() { cli.Main() }
