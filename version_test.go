package lease_test

import (
	"errors"
	"testing"

	"github.com/fencedlease/lease"
)

func TestVersion(t *testing.T) {
	for s, want := range map[string]lease.Version{
		"2009-09-19": lease.Version20090919, "2011-08-18": lease.Version20110818, "2012-02-12": lease.Version20120212,
		"2025-11-05": 2025_11_05, "2024-02-29": 2024_02_29, "9999-12-31": 9999_12_31,
	} {
		got, err := lease.ParseVersion(s)
		if got != want || err != nil || want.String() != s || want.Validate() != nil {
			t.Errorf("%q: %v, %v, %v", s, got, err, want.Validate())
		}
	}
	for _, s := range []string{"", "newest", "2009-09-18", "2012-02-30", "2012-13-01", "2012-2-12", "20120212", "2012-02-12 ", "0000-00-00", "10000-01-01", "2023-02-29"} {
		got, err := lease.ParseVersion(s)
		var field *lease.FieldError
		if got != 0 || !errors.Is(err, lease.ErrVersion) || !errors.As(err, &field) || field.Field != "Version" {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	if v := lease.Version(0); v.Validate() != nil || v.String() != "newest" {
		t.Errorf("the zero version: %v, %v", v, v.Validate())
	}
	for _, v := range []lease.Version{1, 2009_09_18, 2012_02_00, 2012_00_12, 2012_02_30, 10000_01_01, 1<<32 - 1} {
		if !errors.Is(v.Validate(), lease.ErrVersion) {
			t.Errorf("%v is valid", v)
		}
	}
	// The type Version has one predicate for each bullet of the change list. SPEC M17.
	for v, old := range map[lease.Version]bool{
		0: false, lease.Version20120212: false, 2012_02_13: false, lease.Version20110818: true, lease.Version20090919: true, 2012_02_11: true,
	} {
		if v.DurationRequired() == old || v.RenewsReleased() != old || v.BreaksReleased() != old || v.BreaksAgain() == old {
			t.Errorf("%v: %v %v %v %v", v, v.DurationRequired(), v.RenewsReleased(), v.BreaksReleased(), v.BreaksAgain())
		}
	}
}
