//go:build race

package migrations

// golang-migrate reads and writes a field of its own without a lock when it is stopped.
func init() { delete(stopped, "golang-migrate") }
