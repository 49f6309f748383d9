package pgserver

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Addr returns the host and port of the server.
func (s *Server) Addr() string { return s.address }

// SetReadOnly makes the server refuse writes, or accept them again. Its connections stay open.
func (s *Server) SetReadOnly(t testing.TB, readOnly bool) {
	t.Helper()
	s.Exec(t, "postgres", fmt.Sprintf("alter system set default_transaction_read_only = %v", readOnly))
	s.Exec(t, "postgres", "select pg_reload_conf()")
	for shown := ""; shown != map[bool]string{true: "on", false: "off"}[readOnly]; {
		conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
		if err == nil {
			err = conn.QueryRow(t.Context(), "show default_transaction_read_only").Scan(&shown)
			conn.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
