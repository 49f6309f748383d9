package engine

import (
	"fmt"

	"github.com/fencedlease/lease"
)

// WithAdvice returns an error that wraps err, and whose text ends with advice for the operator, such as "make
// the bucket". If advice is empty, the text of err does not change. If permanent is true, the result is a
// [*lease.PermanentError], which means that retries fail until somebody has fixed the problem.
func WithAdvice(err error, advice string, permanent bool) error {
	if advice != "" {
		err = fmt.Errorf("%w; %s", err, advice)
	}
	if permanent {
		return lease.Permanent(err)
	}
	return err
}
