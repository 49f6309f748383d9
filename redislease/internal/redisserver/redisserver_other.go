//go:build !linux

package redisserver

import (
	"errors"
	"fmt"
	"syscall"
)

// diesWithParent returns an error here, because the tests can start servers only on Linux.
func diesWithParent() (*syscall.SysProcAttr, error) {
	return nil, fmt.Errorf("start a Redis server: %w", errors.ErrUnsupported)
}

// The following methods are never called, because no server can be started on this system.
func (s *Server) Pause()  { panic("unreachable: there is no server") }
func (s *Server) Resume() { panic("unreachable: there is no server") }
