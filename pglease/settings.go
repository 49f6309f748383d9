package pglease

import (
	"fmt"

	"github.com/fencedlease/lease"
)

// schemaVersion is the version of [Schema] that this package needs. A newer one serves it too.
const schemaVersion = 2

// settings are what a load finds out about the database besides the row.
type settings struct {
	schema   int    // the version of the tables
	database string // its encoding
	client   string // the encoding of the connection
}

// check returns nil if leases can be kept under these settings. In another encoding than UTF8 one
// name is read as different ones by different drivers, and each of them is a lease of its own.
func (s settings) check() error {
	switch {
	case s.schema < schemaVersion:
		return lease.Permanent(fmt.Errorf("the tables have version %d, and must have %d or newer: run pglease.Schema again, which keeps the leases", s.schema, schemaVersion))
	case s.database != "UTF8":
		return lease.Permanent(fmt.Errorf("the database has the encoding %s, and must have UTF8: keep leases in a database that was made with it", s.database))
	case s.client != "UTF8":
		return lease.Permanent(fmt.Errorf("the connection has the client_encoding %s, and must have UTF8: set it in the connection string, or for the user", s.client))
	}
	return nil
}
