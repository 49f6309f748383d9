package sqlitelease

import "testing"

// The table holds the magic numbers of statfs(2), and no local file system.
func TestNetworkTypes(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "NFS", 0xfe534d42: "SMB2", 0x01021997: "9P",
		0xef53: "", 0x9123683e: "", 0x58465342: "", 0x01021994: "", 0x794c7630: "", // ext4, btrfs, xfs, tmpfs, overlay
	} {
		if got := networkTypes[magic]; got != want {
			t.Errorf("%#x is %q, and should be %q", magic, got, want)
		}
	}
	if kind, err := networkFileSystem(t.TempDir()); err != nil || kind != "" {
		t.Errorf("%q, %v", kind, err)
	}
}
