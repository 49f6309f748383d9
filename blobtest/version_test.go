package blobtest

import (
	"testing"

	"github.com/fencedlease/lease"
)

func TestParseVersion(t *testing.T) {
	for s, want := range map[string]lease.Version{
		"2009-09-19": 2009_09_19, "2011-08-18": lease.Version20110818, "2012-02-12": lease.Version20120212,
		"2025-11-05": 2025_11_05, "2024-02-29": 2024_02_29, "9999-12-31": 9999_12_31,
	} {
		if got, err := parseVersion(s); got != want || err != nil || want.String() != s {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "newest", "2009-09-18", "2012-02-30", "2012-13-01", "2012-2-12", "20120212", "2012-02-12 ", "0000-00-00", "10000-01-01", "2023-02-29"} {
		if got, err := parseVersion(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
