package engine_test

import (
	"errors"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// The advice is at the end of the text, the error is still found, and only a permanent one is permanent.
func TestWithAdvice(t *testing.T) {
	cause := errors.New("no bucket")
	for _, c := range []struct {
		advice    string
		permanent bool
		text      string
	}{
		{"", false, "no bucket"},
		{"make it", false, "no bucket; make it"},
		{"", true, "no bucket"},
		{"make it", true, "no bucket; make it"},
	} {
		err := engine.WithAdvice(cause, c.advice, c.permanent)
		if err.Error() != c.text || !errors.Is(err, cause) || errors.As(err, new(*lease.PermanentError)) != c.permanent {
			t.Errorf("%q, %v: %v", c.advice, c.permanent, err)
		}
	}
}
