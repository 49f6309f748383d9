package sqlitelease

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The map networkTypes contains the kinds of network file systems. The keys are the types in the result of
// statfs(2). Such a file system shares its locks with other machines.
var networkTypes = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x5346414f: "AFS", 0x6b414653: "AFS",
	0x73757245: "Coda", 0x00c36400: "Ceph", 0x01021997: "9P", 0x0bd00bd0: "Lustre", 0x7461636f: "OCFS2",
	0x01161970: "GFS2", 0x47504653: "GPFS",
}

// networkFileSystem returns the kind of a folder's network file system, or "" if the file system is local.
// File systems in user space (FUSE) count as local, because many of them are.
func networkFileSystem(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	return networkTypes[uint32(s.Type)], nil
}

// identify returns the number of hard links of the file, and an identity that a copy of the file does not
// have.
func identify(path string) (identity string, links uint32, err error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME|unix.STATX_NLINK, &s); err != nil {
		return "", 0, fmt.Errorf("stat %s: %w", path, err)
	}
	identity = fmt.Sprint("inode ", s.Ino)
	if s.Mask&unix.STATX_BTIME != 0 {
		identity += fmt.Sprintf(" of %d.%09d", s.Btime.Sec, s.Btime.Nsec)
	}
	return identity, s.Nlink, nil
}

// newClock returns a clock that all processes on this machine share.
func newClock() (*clock, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	namespace, err := namespaceOffset()
	if err != nil {
		return nil, err
	}
	steady := func() (time.Duration, error) {
		var t unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
		return time.Duration(t.Nano()) - namespace, err
	}
	return &clock{boot: strings.TrimSpace(string(boot)), steady: steady, wall: time.Now}, nil
}

// namespaceOffset returns the offset that the time namespace of this process adds to CLOCK_BOOTTIME.
func namespaceOffset() (time.Duration, error) {
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if os.IsNotExist(err) {
		return 0, nil // the kernel has no time namespaces
	} else if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var s, ns int64
		if n, _ := fmt.Sscanf(line, "boottime %d %d", &s, &ns); n == 2 {
			return time.Duration(s)*time.Second + time.Duration(ns), nil
		}
	}
	return 0, nil
}
