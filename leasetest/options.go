package leasetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// Options say how an implementation is tested. A nil *Options and zero fields mean the defaults that
// are stated here.
type Options struct {
	// Can says what the implementation can do. A rule that needs something else is skipped. Default:
	// Everything. For an implementation without breaks it is Everything &^ CanBreak.
	Can Ability

	// Bubble runs every subtest in a synctest bubble. It is for implementations in this process that
	// read the time from package time. In a bubble no time passes while a goroutine waits for
	// something other than a channel or a timer of the bubble, such as I/O, or a sync.Mutex that
	// another goroutine holds across a request. If a rule hangs so for a minute of real time, the
	// process ends, and the message names the rule. With -timeout 0 it hangs forever.
	Bubble bool

	// Unit is the shortest time that the suite distinguishes. Its leases last about ten units.
	// A second in [Vectors] takes one Unit. Default: 1 s in a bubble, otherwise 250 ms.
	Unit time.Duration

	// Slack is how late an answer or a timer may be, and how coarse the clock. If Slack is not zero,
	// no instant can be hit, and the rules about the last nanosecond are skipped. It may be longer
	// than a Unit, for a busy machine. An implementation that is always later than a Unit fails
	// scenarios, and needs a longer Unit. Default: 0 in a bubble, otherwise a Unit.
	Slack time.Duration

	// Sleep passes time. Default: time.Sleep.
	Sleep func(d time.Duration)

	// Limits are the durations that the implementation grants. The suite keeps to them, and requires
	// that other durations are refused. A store that is a [lease.Limiter] needs none. Default: none.
	Limits lease.Limits

	// Authority makes the authority that the leases of TestLease use. Default: one over
	// memory.New(nil).
	Authority func(t testing.TB) lease.Authority

	// Revoke breaks the lease with that name without its holder, as an operator would, for instance
	// by deleting its key. The lease stays locked for the period. The period is 0 without CanBreak.
	// It is for leases without CanUseAuthority, and for authorities without CanBreak.
	Revoke func(t testing.TB, name string, period time.Duration)

	// Cut makes the requests of a lease fail or hang until mend is called. It is for leases without
	// CanUseAuthority.
	Cut func(t testing.TB, l lease.Lease) (mend func())

	// Reopen closes a store that the test made, and opens it again over the same data.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// ReopenAuthority does the same to an authority.
	ReopenAuthority func(t testing.TB, a lease.Authority) lease.Authority

	// Another makes a second client of a store, as another process has one: both have the same data
	// and share no memory.
	Another func(t testing.TB, s lease.Store) lease.Store

	// AnotherAuthority does the same for an authority.
	AnotherAuthority func(t testing.TB, a lease.Authority) lease.Authority

	// Forget makes a store forget every record that it may forget by now. It returns how long a
	// record must have been expired or broken for that.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt replaces the record of a store under that name by something that is not a valid
	// record, as somebody might by hand.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// Seed decides everything that the suite draws at random. Default: the number in the environment
	// variable LEASETEST_SEED, or else a new one in every run. A failure names it.
	Seed uint64
}

// withDefaults returns complete options.
func (o *Options) withDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	must(v.Unit >= 0, "Options.Unit is %v, and must not be negative", v.Unit)
	must(v.Slack >= 0, "Options.Slack is %v, and must not be negative", v.Slack)
	must(v.Can&^Everything == 0, "Options.Can is %#x, and must be a part of Everything, %#x", uint64(v.Can), uint64(Everything))
	must(v.Limits.Validate() == nil, "Options.Limits: %v", v.Limits.Validate())
	if v.Can == 0 {
		v.Can = Everything
	}
	if v.Unit == 0 {
		v.Unit = 250 * time.Millisecond
		if v.Bubble {
			v.Unit = time.Second
		}
	}
	if v.Slack == 0 && !v.Bubble {
		v.Slack = v.Unit
	}
	if v.Sleep == nil {
		v.Sleep = time.Sleep
	}
	v.Can |= v.derived()
	if v.Seed == 0 {
		v.Seed = drawSeed()
	}
	return v
}

// can reports whether the implementation has all of these abilities.
func (o *Options) can(a Ability) bool { return o.Can&a == a }

// seedVariable is the environment variable that replays a run.
const seedVariable = "LEASETEST_SEED"

func drawSeed() uint64 {
	text := os.Getenv(seedVariable)
	if text == "" {
		return 1 + rand.Uint64N(math.MaxUint64)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	must(err == nil && seed > 0, "%s is %q, and must be a number from 1 to %d", seedVariable, text, uint64(math.MaxUint64))
	return seed
}

// leaseDuration is the duration of the leases of the suite.
func (o *Options) leaseDuration() time.Duration {
	d := max(12*o.Unit, o.Limits.MinDuration)
	if o.Limits.MaxDuration > 0 {
		d = min(d, o.Limits.MaxDuration)
	}
	return d
}

// must panics unless ok: an argument makes no sense, and the test that gave it is to be
// mended. The text names the argument and its bound.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("leasetest: " + fmt.Sprintf(format, args...))
	}
}
