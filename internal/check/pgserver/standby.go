package pgserver

import (
	"fmt"
	"testing"
	"time"
)

// Standby starts a streaming standby of the server, with the same settings, and returns when it streams.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	b := newFor(t, []string{"pg_basebackup", "-d", s.URL("postgres"), "-R", "-X", "stream", "-c", "fast"}, s.settings)
	s.standbys++
	s.until(t, fmt.Sprintf("select count(*) = %d from pg_stat_replication where state = 'streaming'", s.standbys))
	return b
}

// Set changes a setting of a running server, and returns when it has the new value.
func (s *Server) Set(t testing.TB, name, value string) {
	t.Helper()
	s.Exec(t, "postgres", fmt.Sprintf("alter system set %s = '%s'", name, value))
	s.Exec(t, "postgres", "select pg_reload_conf()")
	s.until(t, fmt.Sprintf("select current_setting('%s') = '%s'", name, value))
}

// SetReadOnly makes the server refuse writes, or accept them again. Its connections stay open.
func (s *Server) SetReadOnly(t testing.TB, readOnly bool) {
	t.Helper()
	s.Set(t, "default_transaction_read_only", map[bool]string{false: "off", true: "on"}[readOnly])
}

// Detach makes a standby stop receiving data from its primary.
func (s *Server) Detach(t testing.TB) {
	t.Helper()
	s.Set(t, "primary_conninfo", "")
	s.until(t, "select count(*) = 0 from pg_stat_wal_receiver")
}

// Promote makes a standby a primary, which waits for no standby of its own.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "postgres", "select pg_promote()")
	s.Set(t, "synchronous_standby_names", "")
}

// until waits for up to 20 s until the query returns true.
func (s *Server) until(t testing.TB, condition string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // a real engine
		answer, err := query(t.Context(), s.URL("postgres"), condition)
		if answer == "t" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not true within 20 s: %q, %v", condition, answer, err)
		}
	}
}
