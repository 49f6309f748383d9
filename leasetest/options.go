package leasetest

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// Options say how an implementation is to be tested. A nil *Options and zero fields have the
// defaults stated here; then everything is expected of the implementation.
type Options struct {
	// Lacks says what the implementation cannot do. What it does not say is required.
	Lacks Ability

	// Bubble runs every subtest in a synctest bubble, for an implementation in process that
	// lives on package time. In a bubble time stands still while somebody waits for what is no
	// channel or timer of the bubble, such as a sync.Mutex that is held across a request, or I/O.
	// A rule that hangs on it for a minute of real time ends the process, and the text names the
	// rule; where go test has no time-out (-timeout 0) it hangs on.
	Bubble bool

	// Unit is the shortest time that the suite tells apart. Its leases last some ten units.
	// Default: 1 s in a bubble, otherwise 250 ms. Times of [Vectors] are in seconds; the suite
	// takes a second to be a Unit.
	Unit time.Duration

	// Slack is how late an answer or a timer may be, and how coarse the clock. Where it is not
	// zero no instant can be hit, and the rules of the last nanosecond are skipped. It may be
	// more than a Unit to bear with a busy machine; an implementation that is always later than
	// a Unit fails scenarios, and needs a longer one. Default: 0 in a bubble, otherwise a Unit.
	Slack time.Duration

	// Sleep passes time. Default: time.Sleep.
	Sleep func(d time.Duration)

	// Limits are the durations that the implementation grants. The suite keeps to them, and
	// requires that what lies outside is refused. Those of a store that is a [lease.Limiter]
	// are known without. Default: none.
	Limits lease.Limits

	// Authority makes the authority that the leases of TestLease are to hold over. Default:
	// one over memory.New(nil).
	Authority func(t testing.TB) lease.Authority

	// Revoke ends the lease of that name behind its holder's back, after a period in which it
	// stays locked: what an operator would do, such as to delete its key. The period is 0 if
	// Breaking is lacking. It is for leases that lack Injecting, or Breaking; without it the
	// rules that need it are skipped.
	Revoke func(t testing.TB, name string, period time.Duration)

	// Cut cuts a lease under test off from its authority, until mend is called: its requests
	// fail or hang. It is for leases that lack Injecting; without it the rules that need a
	// network that fails are skipped.
	Cut func(t testing.TB, l lease.Lease) (mend func())

	// Reopen closes a store or an authority and opens it again over the same data. It is
	// required unless Durable is lacking.
	Reopen func(t testing.TB, s lease.Store) lease.Store

	// Another makes a second client of a store over the same data, such as another process has:
	// the two share no memory. Without it the rules of two clients are skipped.
	Another func(t testing.TB, s lease.Store) lease.Store

	// Forget makes a store forget, under all names, what it may forget by now, and reports
	// how long a record must have been expired or broken for that. It is required unless
	// Forgetting is lacking.
	Forget func(t testing.TB, s lease.Store) (after time.Duration)

	// Corrupt puts something in the place of the record of a store under that name that is
	// no record, as somebody may by hand. Without it the rule of such records is skipped.
	Corrupt func(t testing.TB, s lease.Store, name string)

	// Seed decides whatever the suite draws. Default: the number in the environment variable
	// LEASETEST_SEED, or without it a new one in every run. A failure tells it.
	Seed uint64
}

func (o *Options) withDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	must(v.Unit >= 0, "Options.Unit is %v, and must not be negative", v.Unit)
	must(v.Slack >= 0, "Options.Slack is %v, and must not be negative", v.Slack)
	must(v.Lacks>>abilities == 0, "Options.Lacks is %#x, and must be of the abilities that there are, below %#x", uint32(v.Lacks), uint32(1)<<abilities)
	must(v.Limits.Validate() == nil, "Options.Limits: %v", v.Limits.Validate())
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
	if v.Slack > 0 || v.Lacks&OwnClock != 0 {
		v.Lacks |= exact
	}
	if v.Limits.MinDuration > 1 {
		v.Lacks |= short
	}
	v.Lacks |= v.follows()
	if v.Seed == 0 {
		v.Seed = drawSeed()
	}
	return v
}

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

// follows is what an implementation cannot be put through, by what it lacks otherwise.
func (o *Options) follows() (lacks Ability) {
	injects, clocks := o.Lacks&Injecting == 0, o.Lacks&Clocks == 0
	cuts, revokes := injects || o.Cut != nil, injects && o.Lacks&Breaking == 0 || o.Revoke != nil
	for ability, there := range map[Ability]bool{
		cutting: cuts, revoking: revokes, stalling: cuts || clocks, losing: cuts || clocks || revokes,
		corrupting: o.Corrupt != nil, sharing: o.Another != nil,
	} {
		if !there {
			lacks |= ability
		}
	}
	return lacks
}

// term is the duration of the leases of the suite.
func (o *Options) term() time.Duration {
	d := max(12*o.Unit, o.Limits.MinDuration)
	if o.Limits.MaxDuration > 0 {
		d = min(d, o.Limits.MaxDuration)
	}
	return d
}
