//go:build !linux

package enginetest

import (
	"errors"
	"fmt"
	"syscall"
)

// diesWithParent returns no attributes, because only Linux kills a process when its parent ends.
func diesWithParent() *syscall.SysProcAttr { return nil }

// Stop returns an error, because processes can only be stopped on Linux.
func (p *Process) Stop() error {
	return fmt.Errorf("enginetest: stop a process: %w", errors.ErrUnsupported)
}

// Continue returns an error, because processes can only be continued on Linux.
func (p *Process) Continue() error {
	return fmt.Errorf("enginetest: continue a process: %w", errors.ErrUnsupported)
}
