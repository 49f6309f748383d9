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

// Options configure the test of an implementation. A nil *Options and zero fields stand for the
// defaults.
type Options struct {
	// Can contains the abilities of the implementation. A rule that needs another ability is
	// skipped. For example, the value for an implementation without breaks is Everything &^
	// CanBreak. Default: Everything.
	Can Ability

	// Bubble runs every subtest in a synctest bubble. Use it for an implementation that runs in
	// this process and reads the time from package time. The time of a bubble stands still while a
	// goroutine waits for anything except a channel or a timer of that bubble. For example, time
	// stands still while a goroutine waits for I/O, or for a sync.Mutex that another goroutine
	// holds during a request. If a rule takes more than a minute of real time, the process ends,
	// and its last message names the rule. With the flag -timeout 0 the rule blocks forever
	// instead.
	Bubble bool

	// Unit is the shortest time that the suite distinguishes. The leases of the suite last about ten
	// units. A second in [Vectors] takes one Unit. Default: 1 s in a bubble, otherwise 250 ms.
	Unit time.Duration

	// Slack is the longest delay of answers and timers that the suite tolerates. The tick of the
	// clock must not be longer than Slack either. If Slack is not zero, rules that need exact times
	// are skipped. On a busy machine, Slack may have to be longer than a Unit. If every answer
	// takes longer than a Unit, some scenarios fail. Set a longer Unit in that case. Default: 0 in
	// a bubble, otherwise a Unit.
	Slack time.Duration

	// Sleep pauses the calling goroutine for d. Default: time.Sleep.
	Sleep func(d time.Duration)

	// Limits contains the bounds of the durations and periods that the implementation grants. The
	// suite uses durations within these bounds, and requires that the implementation refuses all
	// other durations. If a store is a [lease.Limiter], the suite calls its Limits method, and this
	// field need not be set. Default: no limits.
	Limits lease.Limits

	// Authority makes the authority that the leases of TestLease use. Default: an authority over
	// memory.New(nil).
	Authority func(t testing.TB) lease.Authority

	// Revoke ends the named lease as an operator would, for example by deleting its key. The holder
	// of the lease takes no part in that. The lease stays locked for the given period. Without
	// CanBreak the period is 0. Set Revoke if the lease lacks CanUseAuthority or if the authority
	// lacks CanBreak.
	Revoke func(t testing.TB, name string, period time.Duration)

	// Cut makes the requests of the lease l fail or block until mend is called. It is for leases
	// without CanUseAuthority.
	Cut func(t testing.TB, l lease.Lease) (mend func())

	// Reopen closes the store s and opens it again with the same data.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// ReopenAuthority closes the authority a and opens it again with the same data.
	ReopenAuthority func(t testing.TB, a lease.Authority) lease.Authority

	// Another makes a second client of the store s, as another process would. Both clients use the
	// same data, but share no memory.
	Another func(t testing.TB, s lease.Store) lease.Store

	// AnotherAuthority makes a second client of the authority a, as another process would.
	AnotherAuthority func(t testing.TB, a lease.Authority) lease.Authority

	// Forget makes the store s forget all records that it is allowed to forget now. It returns how
	// long a record must have been expired or broken before the store may forget it.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt replaces the record of the named lease by data that is not a valid record, as a wrong
	// edit by hand would.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// Seed is the seed of all random choices of the suite. The message of a failure contains the
	// seed. Default: the number in the environment variable LEASETEST_SEED, or a random number if
	// that variable is empty.
	Seed uint64
}

// withDefaults returns a copy of o with default values for its zero fields and with the detected
// abilities. It panics if an option is invalid.
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

// can reports whether the implementation has all abilities in a.
func (o *Options) can(a Ability) bool { return o.Can&a == a }

// seedVariable is the environment variable that sets the seed.
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

// leaseDuration returns the duration of the leases of the suite.
func (o *Options) leaseDuration() time.Duration {
	d := max(12*o.Unit, o.Limits.MinDuration)
	if o.Limits.MaxDuration > 0 {
		d = min(d, o.Limits.MaxDuration)
	}
	return d
}

// must panics if ok is false, because the test has passed an invalid argument. The text names the
// argument and its bound.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("leasetest: " + fmt.Sprintf(format, args...))
	}
}
