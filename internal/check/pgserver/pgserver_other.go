//go:build !linux

package pgserver

import (
	"errors"
	"fmt"
	"syscall"
)

// unprivileged returns an error here, because the tests can start servers only on Linux.
func unprivileged() (*syscall.SysProcAttr, int, error) {
	return nil, 0, fmt.Errorf("start a PostgreSQL server: %w", errors.ErrUnsupported)
}

// The following methods are never called, because no server can be started on this system.
func (s *Server) Freeze()  { panic("unreachable: there is no server") }
func (s *Server) Resume()  { panic("unreachable: there is no server") }
func (s *Server) killAll() { panic("unreachable: there is no server") }
func (s *Server) quit()    { panic("unreachable: there is no server") }
