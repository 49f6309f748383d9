package linearize

import (
	"errors"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A negative Epsilon is refused.
func TestRecorderOptions(t *testing.T) {
	const want = "Options.Epsilon = -1ns: must not be negative"
	if rec, err := NewRecorder(&Options{Observed: true, Epsilon: -1}); rec != nil || err == nil || err.Error() != want || !errors.Is(err, lease.ErrOption) {
		t.Errorf("%v, %v, want %s", rec, err, want)
	}
	for _, o := range []*Options{nil, {}, {Observed: true}, {Observed: true, Epsilon: time.Second}} {
		if _, err := NewRecorder(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
