package engine

import (
	"fmt"

	"github.com/fencedlease/lease"
)

// WithAdvice returns err with advice for a person who reads it, such as "make the bucket", after its text. If permanent is
// true, no retry can succeed before a person has done something, and the result is a [*lease.PermanentError]. An
// empty advice adds nothing.
func WithAdvice(err error, advice string, permanent bool) error {
	if advice != "" {
		err = fmt.Errorf("%w; %s", err, advice)
	}
	if permanent {
		return lease.Permanent(err)
	}
	return err
}
