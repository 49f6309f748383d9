//go:build !linux

package processes

import (
	"errors"
	"fmt"
	"syscall"
)

// diesWithParent returns no attributes, because only Linux kills a process when its parent ends.
func diesWithParent() *syscall.SysProcAttr { return nil }

// Stop returns an error, because processes can only be stopped on Linux.
func (p *Process) Stop() error {
	return fmt.Errorf("processes: stop a process: %w", errors.ErrUnsupported)
}

// Continue returns an error, because processes can only be continued on Linux.
func (p *Process) Continue() error {
	return fmt.Errorf("processes: continue a process: %w", errors.ErrUnsupported)
}
