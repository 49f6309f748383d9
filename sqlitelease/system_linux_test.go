package sqlitelease

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The table holds the magic numbers of statfs(2), and no local file system. A file on one of the table is
// refused, unless an option allows it.
func TestNetworkTypes(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xfe534d42: "SMB2", 0x01021997: "9P",
		0xef53: "", 0x9123683e: "", 0x58465342: "", 0x01021994: "", 0x794c7630: "", // ext4, btrfs, xfs, tmpfs, overlay
	} {
		if got := networkTypes[magic]; got != want {
			t.Errorf("%#x is %q, and should be %q", magic, got, want)
		}
	}
	dir := t.TempDir()
	if kind, err := networkFileSystem(dir); err != nil || kind != "" {
		t.Fatalf("%q, %v", kind, err)
	}
	// As if the file system of dir were one of the table, because the test can mount none.
	var f unix.Statfs_t
	if err := unix.Statfs(dir, &f); err != nil {
		t.Fatal(err)
	}
	networkTypes[uint32(f.Type)] = "far away"
	defer delete(networkTypes, uint32(f.Type))
	path := filepath.Join(dir, "leases.db")
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), "network file system (far away)") {
		t.Errorf("%v", err)
	}
	s, err := Open(path, &Options{AllowNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
}
