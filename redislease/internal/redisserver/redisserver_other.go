//go:build !linux

package redisserver

import (
	"errors"
	"fmt"
	"syscall"
)

// diesWithParent returns an error, so that no server is started: these tests run on Linux only.
func diesWithParent() (*syscall.SysProcAttr, error) {
	return nil, fmt.Errorf("start a Redis server: %w", errors.ErrUnsupported)
}

// No server is ever started, so that none can be paused.
func (s *Server) Pause()  { panic("unreachable: there is no server") }
func (s *Server) Resume() { panic("unreachable: there is no server") }
