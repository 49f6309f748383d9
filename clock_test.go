package lease_test

import (
	"github.com/benbjohnson/clock"
	"github.com/fencedlease/lease"
)

// A program that already has a clock of benbjohnson/clock can pass it on.
var _ = [...]lease.Clock{clock.New(), clock.NewMock()}
