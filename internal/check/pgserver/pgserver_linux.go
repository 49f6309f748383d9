package pgserver

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// unprivileged returns the process attributes and the user ID with which to start the server. PostgreSQL
// refuses to run as root, so root starts it as the user nobody.
func unprivileged() (*syscall.SysProcAttr, int, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		return attr, os.Getuid(), nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, 0, err
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, uid, nil
}

func (s *Server) signal(sig syscall.Signal) {
	for _, pid := range append(children(s.Pid()), s.Pid()) {
		_ = syscall.Kill(pid, sig)
	}
}

func children(pid int) (found []int) {
	out, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, word := range strings.Fields(string(out)) {
		if child, err := strconv.Atoi(word); err == nil {
			found = append(found, child)
		}
	}
	return found
}

// Freeze stops every process of the server until Resume is called.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Resume continues a frozen server.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// killAll kills every process of the server.
func (s *Server) killAll() { s.signal(syscall.SIGKILL) }

// quit asks the server to end at once, even if it is paused.
func (s *Server) quit() {
	s.Resume()
	_ = syscall.Kill(s.Pid(), syscall.SIGQUIT)
}
