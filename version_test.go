package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

func TestVersion(t *testing.T) {
	if v := lease.Version(0); v.String() != "newest" || lease.Version20120212.String() != "2012-02-12" {
		t.Errorf("%v, %v", v, lease.Version20120212)
	}
	for v, known := range map[lease.Version]bool{
		0: true, 2009_09_19: true, 2024_02_29: true, 9999_12_31: true,
		1: false, 2009_09_18: false, 2012_02_00: false, 2012_00_12: false, 2012_02_30: false, 10000_01_01: false, 1<<32 - 1: false,
	} {
		err := lease.Limits{}.Check(lease.Request{Action: lease.ActionRead, Version: v})
		var field *lease.FieldError
		if (err == nil) != known || !known && (!errors.Is(err, lease.ErrVersion) || !errors.As(err, &field) || field.Field != "Version") {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// The change list applies from Version20120212 on. SPEC M17.
func TestDialects(t *testing.T) {
	acquire := lease.Request{Action: lease.ActionAcquire, Proposed: lease.ID{1}} // without a duration
	for v, old := range map[lease.Version]bool{
		0: false, lease.Version20120212: false, 2012_02_13: false, lease.Version20110818: true, 2009_09_19: true, 2012_02_11: true,
	} {
		acquire.Version = v
		if _, err := lease.Step(lease.Record{}, acquire, time.Unix(0, 0)); (err == nil) != old {
			t.Errorf("%v: %v", v, err)
		}
	}
}
