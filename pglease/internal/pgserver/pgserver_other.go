//go:build !linux

package pgserver

import (
	"errors"
	"fmt"
	"syscall"
)

// nobody returns an error, so that no server is started: these tests run on Linux only.
func nobody() (*syscall.SysProcAttr, int, error) {
	return nil, 0, fmt.Errorf("start a PostgreSQL server: %w", errors.ErrUnsupported)
}

// No server is ever started, so that none can be paused or killed.
func (s *Server) Pause()   { panic("unreachable: there is no server") }
func (s *Server) Resume()  { panic("unreachable: there is no server") }
func (s *Server) killAll() { panic("unreachable: there is no server") }
func (s *Server) quit()    { panic("unreachable: there is no server") }
