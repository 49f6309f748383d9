package pglease

import "strings"

// schemaSQL is the SQL of the version of the tables. On a server that is read-only, the cast fails. A
// statement that writes nothing, such as a list, therefore fails there like all others.
const schemaSQL = `(case current_setting('transaction_read_only') when 'on' then '` + readOnlyText + `' else f.schema::text end)::integer`

const readOnlyText = "lease: the server is read-only"

// mustLeave reports whether err shows that the server of a connection can no longer keep leases: it
// has become read-only or a standby, or it is stopping. Such a server can keep its connections open
// for hours while new connections go to another server, so the store closes all of them.
func mustLeave(err error) bool {
	switch sqlState(err) {
	case adminShutdown, crashShutdown, cannotConnectNow:
		return true
	}
	return isReadOnly(err)
}

// isReadOnly reports whether a server has refused a statement because it is read-only or a standby. It
// has certainly not carried out the statement.
func isReadOnly(err error) bool {
	switch sqlState(err) {
	case readOnlySQLTransaction:
		return true
	case invalidText:
		return strings.Contains(err.Error(), readOnlyText)
	}
	return false
}
