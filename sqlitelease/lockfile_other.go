//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlitelease

import (
	"io/fs"
	"os"
)

// The method try always succeeds. No further lock is needed on these systems, because the locks of SQLite are
// enough.
func (lockFile) try() (bool, error) { return true, nil }

func (lockFile) unlock() {}

func copyOwner(*os.File, fs.FileInfo) error { return nil }
