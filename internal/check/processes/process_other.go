//go:build !linux

package processes

import (
	"errors"
	"fmt"
	"syscall"
)

// diesWithParent returns no attributes: only Linux kills a process when its parent ends.
func diesWithParent() *syscall.SysProcAttr { return nil }

// Stop returns an error: processes are stopped on Linux only.
func (p *Process) Stop() error {
	return fmt.Errorf("processes: stop a process: %w", errors.ErrUnsupported)
}

// Continue returns an error: processes are continued on Linux only.
func (p *Process) Continue() error {
	return fmt.Errorf("processes: continue a process: %w", errors.ErrUnsupported)
}
