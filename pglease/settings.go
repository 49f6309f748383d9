package pglease

import (
	"fmt"

	"github.com/fencedlease/lease"
)

// oldestTables is the oldest version of [Tables] that this package accepts.
const oldestTables = 3

// settingsSQL has the names and values of the settings, for a JSON object.
const settingsSQL = `'schema', ` + schemaSQL + `, 'database', getdatabaseencoding(), 'client', pg_client_encoding()`

const connectedSQL = `select json_build_object({settings}) from {floor} f`

// settings describes the database and the connection. Every [Store.Load] reads the settings together with the
// row.
type settings struct {
	Schema   int    // the version of the tables
	Database string // its encoding
	Client   string // the encoding of the connection
}

// check returns an error if a database or connection with these settings cannot be used for leases. In an
// encoding other than UTF8, two drivers can read the name of one lease as two different names.
func (s settings) check() error {
	switch {
	case s.Schema < oldestTables:
		return lease.Permanent(fmt.Errorf("the tables have version %d, and must have %d or newer: call pglease.Migrate or run tables.sql, which keep the leases", s.Schema, oldestTables))
	case s.Database != "UTF8":
		return lease.Permanent(fmt.Errorf("the database has the encoding %s, and must have UTF8: keep leases in a database that was made with it", s.Database))
	case s.Client != "UTF8":
		return lease.Permanent(fmt.Errorf("the connection has the client_encoding %s, and must have UTF8: set it in the connection string, or for the user", s.Client))
	}
	return nil
}
