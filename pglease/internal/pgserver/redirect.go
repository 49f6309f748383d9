package pgserver

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// A Redirect is an address whose new connections go to one server, and later to another one. Old
// connections stay with their server, as at a service whose DNS record or proxy changes.
type Redirect struct {
	listener net.Listener
	to       atomic.Pointer[Server]
}

// NewRedirect returns a Redirect to s, which ends with the test.
func NewRedirect(t testing.TB, s *Server) *Redirect {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	r := &Redirect{listener: l}
	r.To(s)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go r.relay(client)
		}
	}()
	return r
}

func (r *Redirect) relay(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", r.to.Load().port))
	if err != nil {
		return
	}
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	_, _ = io.Copy(client, server)
}

// To makes all connections from now on go to s.
func (r *Redirect) To(s *Server) { r.to.Store(s) }

// URL returns the connection string of a database.
func (r *Redirect) URL(database string) string {
	s := r.to.Load()
	return strings.Replace(s.URL(database), fmt.Sprint(":", s.port), fmt.Sprint(":", r.listener.Addr().(*net.TCPAddr).Port), 1)
}

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
