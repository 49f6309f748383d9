package blobtest

import (
	"time"

	"github.com/fencedlease/lease"
)

// parseVersion parses a version in the form of the header x-ms-version, such as "2012-02-12". Versions before
// 2009-09-19 are errors, because they have no leases.
func parseVersion(s string) (lease.Version, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, err
	}
	v := lease.Version(t.Year()*10000 + int(t.Month())*100 + t.Day())
	return v, limits.Check(lease.Request{Action: lease.ActionRead, Version: v})
}
