package holder

import (
	"fmt"
	"time"

	"github.com/fencedlease/lease"
)

// Options are those of package session that a Machine needs, with the defaults filled in.
type Options struct {
	Owner          string
	TakeOver       bool
	Duration       time.Duration
	RenewInterval  time.Duration
	RequestTimeout time.Duration
	RetryDelay     time.Duration
	StopWindow     time.Duration // not positive: there is none
	MaxClockDrift  float64
	Margin         time.Duration
	MaxClockJump   time.Duration
}

// Window returns the StopWindow, or 0 if there is none.
func (o *Options) Window() time.Duration { return max(0, o.StopWindow) }

// Random is the source of IDs and jitter.
type Random interface {
	ID() lease.ID
	Shorten(t time.Duration, part float64) time.Duration // shortens t at random, by at most the given part
}

// Join joins two errors as errors.Join does, but with their texts on one line.
func Join(err, more error) error {
	switch {
	case err == nil:
		return more
	case more == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}
