package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A table of options, and the field that the error names.
func TestCheckOptions(t *testing.T) {
	for _, c := range []struct {
		limits lease.Limits
		names  int
		floor  lease.Token
		epoch  uint64
		field  string
	}{
		{},
		{names: 1, floor: lease.TokenOf(7), limits: lease.Limits{MaxDuration: time.Minute}, epoch: 7},
		{floor: lease.TokenOf(engine.HighestFloor), epoch: engine.HighestFloor},
		{limits: lease.Limits{MaxDuration: -1}, field: "Options.Limits.MaxDuration"},
		{names: -1, field: "Options.Names"},
		{floor: "7", field: "Options.Floor"},
		{floor: lease.TokenOf(engine.HighestFloor + 1), field: "Options.Floor"},
	} {
		epoch, err := engine.CheckOptions(c.limits, c.names, c.floor, engine.HighestFloor)
		var bad *lease.FieldError
		if errors.As(err, &bad) != (c.field != "") || bad != nil && bad.Field != c.field || epoch != c.epoch {
			t.Errorf("%+v: %d, %v", c, epoch, err)
		}
	}
}
