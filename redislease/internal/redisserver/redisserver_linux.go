package redisserver

import "syscall"

func diesWithParent() (*syscall.SysProcAttr, error) {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, nil
}

// Pause stops the server until Resume is called.
func (s *Server) Pause() { _ = s.child.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused server.
func (s *Server) Resume() { _ = s.child.Process.Signal(syscall.SIGCONT) }
