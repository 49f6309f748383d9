package leasetest

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// Options configure the test of an implementation. A nil *Options or a zero field means the default.
type Options struct {
	// Can contains the abilities of the implementation. The suite skips every rule that needs another
	// ability. For example, for an implementation without lease.ActionBreak, set Can to Everything &^
	// CanBreak. Default: Everything.
	Can Ability

	// Lacks lists the abilities that the implementation does not have, such as "CanBreak", "a method List" or
	// "Options.Store.Forget". The log of skipped rules shows these names. If Lacks is not nil, a rule that
	// needs another missing ability fails instead of being skipped. The suite then detects, for example, that
	// a hook was forgotten. The ability "exact time" need not be listed, because it is always missing if
	// Slack is not zero. Default: nil, so every rule may be skipped.
	Lacks []string

	// Bubble runs every subtest in a synctest bubble. Set Bubble if the implementation runs in the same
	// process as the test, and uses only the clock of package time. The time of a bubble stands still while a
	// goroutine waits for I/O, or for a sync.Mutex that another goroutine holds during a request. To end such
	// a rule, the suite ends the process when a rule has taken a minute of real time, or nine tenths of the
	// time that was left until the timeout of the test, whichever is shorter. The last message then names the
	// rule and contains all earlier failures.
	Bubble bool

	// Unit is the shortest time that the suite distinguishes. The suite acquires leases that last for twelve
	// Units. If Limits do not allow this duration, the suite uses the nearest duration that they allow. In
	// the files of [Vectors], one second stands for one Unit, or for Limits.MinDuration/15 if that is
	// longer. Scenarios that need CanServeOldVersions use real seconds, whatever the Unit is. Default: 1 s in
	// a bubble, otherwise 250 ms.
	Unit time.Duration

	// Slack is the longest delay that the suite tolerates for an answer or a timer. If the clock of the
	// implementation has ticks, Slack must be at least as long as a tick. If Slack is not zero, the suite
	// skips all rules that need exact times. On a busy machine, a rule can need a Slack that is longer than a
	// Unit. If every answer takes longer than a Unit, or the tick of the clock is longer than half a Unit,
	// set a longer Unit.
	//
	// If an answer or a timer was late by more than Slack while a rule was running, a failure of this rule
	// does not count. The suite then runs the rule again, first beside only a few other rules, and in later
	// runs alone. After eight such failures, the suite skips the rule. In a bubble, or if Sleep is set, every
	// failure counts. Default: 0 in a bubble, otherwise a Unit.
	Slack time.Duration

	// Sleep pauses the calling goroutine for d. Default: time.Sleep.
	Sleep func(d time.Duration)

	// Limits contains the bounds of the durations and periods that the implementation grants. The suite uses
	// durations within these bounds, and requires that the implementation refuses all others. For a store
	// that is a [lease.Limiter], Limits need not be set. Default: no limits.
	Limits lease.Limits

	// The hooks do what the methods of the implementation cannot do. If a hook is nil, the suite skips the
	// rules that need it. Each suite uses only the hooks of its own kind.

	Store     StoreHooks     // for TestStore
	Authority AuthorityHooks // for TestAuthority
	Lease     LeaseHooks     // for TestLease
	Guard     GuardHooks     // for TestGuard

	// Seed determines all random choices of the suite. The message of a failure contains the Seed. Default:
	// the number in the environment variable LEASETEST_SEED, from 1 to 2^64-1, or a random number if it is
	// not set.
	Seed uint64

	realTime bool // the suite sleeps in real time, so that answers and timers may be late
}

// withDefaults returns a copy of o with defaults for zero fields, and with the abilities that follow from the
// other options. It panics if an option is invalid.
func (o *Options) withDefaults() Options {
	var v Options
	if o != nil {
		v = *o
	}
	must(v.Unit >= 0, "Options.Unit is %v, and must not be negative", v.Unit)
	must(v.Slack >= 0, "Options.Slack is %v, and must not be negative", v.Slack)
	must(v.Can&^Everything == 0, "Options.Can is %#x, and must be a part of Everything, %#x", uint64(v.Can), uint64(Everything))
	must(v.Limits.Validate() == nil, "Options.Limits: %v", v.Limits.Validate())
	for _, name := range v.Lacks {
		must(slices.Contains(abilityNames[:], name), "Options.Lacks contains %q, and must contain only %q", name, abilityNames)
	}
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
		v.realTime = !v.Bubble
	}
	v.Can |= v.derived()
	if v.Seed == 0 {
		v.Seed = drawSeed()
	}
	return v
}

func (o *Options) can(a Ability) bool { return o.Can&a == a }

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

// leaseDuration returns the duration of the leases that the suite acquires.
func (o *Options) leaseDuration() time.Duration {
	d := max(12*o.Unit, o.Limits.MinDuration)
	if o.Limits.MaxDuration > 0 {
		d = min(d, o.Limits.MaxDuration)
	}
	return d
}

// must panics if ok is false. The format describes the invalid argument and its bound.
func must(ok bool, format string, args ...any) {
	if !ok {
		panic("leasetest: " + fmt.Sprintf(format, args...))
	}
}

// An Ability is a bit set. Each bit stands for something that an implementation may support. You declare some
// abilities in [Options.Can], and the suite detects the others, such as optional methods.
type Ability uint64

const (
	// These are abilities of stores and authorities.

	CanTellTime         Ability = 1 << iota // has a clock: Snapshot.Uncertainty is at most its tick
	CanBreak                                // supports lease.ActionBreak, with and without a period
	CanChange                               // supports lease.ActionChange
	CanUse                                  // supports lease.ActionWrite, and lease.ActionRead with an ID
	CanBeInfinite                           // grants leases of infinite duration
	CanServeOldVersions                     // serves requests of protocol versions before 2012-02-12
	CanShowRecords                          // returns complete records with results, refusals and lists

	// These are abilities of leases.

	CanUseAuthority // sends every request to Holder.Authority
	CanUseClock     // reads the time from Holder.Clock
	CanTakeOver     // takes over a lease if Holder.TakeOver is set

	declared = iota // the number of the abilities above, which Options.Can can contain
)

// Everything is an [Ability] with all bits that can be declared in [Options.Can].
const Everything Ability = 1<<declared - 1

// The suite detects these abilities by itself.
const (
	// Methods.

	hasWatch         Ability = 1 << (declared + iota) // lease.Watcher
	hasList                                           // lease.Lister
	hasToken                                          // lease.TokenAcquirer
	hasWait                                           // lease.Waiter
	hasHandOver                                       // HandOver and ID
	hasOnBreaking                                     // OnBreaking
	hasClose                                          // Close
	hasWhileHeld                                      // WhileHeld
	hasLastConfirmed                                  // LastConfirmed
	hasAuthority                                      // Authority
	hasDoContext                                      // DoContext

	// Hooks of Options.

	hasReopen
	hasReopenAuthority
	hasReopenGuard
	hasAnother
	hasAnotherAuthority
	hasConnect
	hasConnectAuthority
	hasLoseWatches
	hasForget
	hasCorrupt
	hasCorruptAuthority
	hasPut
	hasStepClock

	// These abilities follow from other abilities and from other fields of Options.

	exactTime   // Slack is zero and the implementation has a clock, so all times are exact
	noLimits    // Options.Limits is zero, so every duration and every period is granted
	shortLeases // Limits.MinDuration is at most 1 ns, so even the shortest leases are granted
	oldLeases   // Limits allow durations from 15 s to 60 s, which scenarios of old protocol versions need
	canCut      // the suite can cut a holder off from its authority, with CanUseAuthority or Options.Lease.Cut
	canRevoke   // the suite can break a lease, with CanUseAuthority and CanBreak, or with Options.Lease.Revoke
	canStall    // the suite can prevent renewals, with canCut or CanUseClock
	canLose     // the suite can make a holder lose its lease, with canStall or canRevoke

	abilities = declared + iota
)

const methods = hasWatch | hasList | hasToken | hasWait | hasHandOver | hasOnBreaking | hasClose | hasWhileHeld | hasLastConfirmed | hasAuthority | hasDoContext

var abilityNames = [abilities]string{
	"CanTellTime", "CanBreak", "CanChange", "CanUse", "CanBeInfinite", "CanServeOldVersions", "CanShowRecords",
	"CanUseAuthority", "CanUseClock", "CanTakeOver",
	"a method Watch", "a method List", "a method AcquireWithToken", "a method Wait", "the methods HandOver and ID",
	"a method OnBreaking", "a method Close", "a method WhileHeld", "a method LastConfirmed",
	"a method Authority", "a method DoContext",
	"Options.Store.Reopen", "Options.Authority.Reopen", "Options.Guard.Reopen", "Options.Store.Another", "Options.Authority.Another", "Options.Store.Connect", "Options.Authority.Connect", "Options.Store.LoseWatches", "Options.Store.Forget", "Options.Store.Corrupt", "Options.Authority.Corrupt", "Options.Authority.Put", "Options.Store.StepClock",
	"exact time", "no limits", "leases of 1 ns", "leases of 15 s to 60 s", "CanUseAuthority or Options.Lease.Cut",
	"CanUseAuthority and CanBreak, or Options.Lease.Revoke", "CanUseAuthority, CanUseClock or Options.Lease.Cut",
	"CanUseAuthority, CanUseClock, Options.Lease.Cut or Options.Lease.Revoke",
}

// String returns the names of the abilities in a, separated by commas, such as "CanBreak, CanChange".
func (a Ability) String() string {
	if a == 0 {
		return "nothing"
	}
	var names []string
	for ; a != 0; a &= a - 1 {
		if i := bits.TrailingZeros64(uint64(a)); i < abilities {
			names = append(names, abilityNames[i])
		} else {
			names = append(names, "unknown")
		}
	}
	return strings.Join(names, ", ")
}

// These optional methods belong to no interface of package lease.
type (
	handOverer interface {
		HandOver(ctx context.Context, to lease.ID) error
		ID() lease.ID
	}
	breakNotifier interface {
		OnBreaking(f func(until time.Time)) (stop func() bool)
	}
	closer interface {
		Close(ctx context.Context) error
	}
	contextBinder interface {
		WhileHeld(ctx context.Context) (context.Context, context.CancelFunc)
	}
	confirmer interface {
		LastConfirmed() (time.Time, bool)
	}
	authorityMaker interface {
		Authority() lease.Authority
	}
	contextGuard interface {
		DoContext(ctx context.Context, tok lease.Token, f func() error) error
	}
)

// methodsOf returns one ability for each optional method of v. For example, if v has the method Watch, the
// result contains the ability hasWatch.
func methodsOf(v any) (found Ability) {
	for ability, has := range map[Ability]bool{
		hasWatch: is[lease.Watcher](v), hasList: is[lease.Lister](v), hasToken: is[lease.TokenAcquirer](v), hasWait: is[lease.Waiter](v),
		hasHandOver: is[handOverer](v), hasOnBreaking: is[breakNotifier](v), hasClose: is[closer](v),
		hasWhileHeld: is[contextBinder](v), hasLastConfirmed: is[confirmer](v), hasAuthority: is[authorityMaker](v), hasDoContext: is[contextGuard](v),
	} {
		if has {
			found |= ability
		}
	}
	return found
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// oldDuration is the fixed duration of leases in protocol versions before 2012-02-12.
const oldDuration = time.Minute

// derived returns the abilities that follow from the other options.
func (o *Options) derived() (found Ability) {
	cut := o.can(CanUseAuthority) || o.Lease.Cut != nil
	revoke := o.can(CanUseAuthority|CanBreak) || o.Lease.Revoke != nil
	stall := cut || o.can(CanUseClock)
	for ability, there := range map[Ability]bool{
		hasReopen: o.Store.Reopen != nil, hasReopenAuthority: o.Authority.Reopen != nil, hasReopenGuard: o.Guard.Reopen != nil,
		hasAnother: o.Store.Another != nil, hasAnotherAuthority: o.Authority.Another != nil,
		hasConnect: o.Store.Connect != nil, hasConnectAuthority: o.Authority.Connect != nil, hasLoseWatches: o.Store.LoseWatches != nil,
		hasForget: o.Store.Forget != nil, hasCorrupt: o.Store.Corrupt != nil, hasCorruptAuthority: o.Authority.Corrupt != nil, hasPut: o.Authority.Put != nil, hasStepClock: o.Store.StepClock != nil,
		exactTime: o.Slack == 0 && o.can(CanTellTime), noLimits: o.Limits == lease.Limits{}, shortLeases: o.Limits.MinDuration <= 1,
		oldLeases: o.Limits.MinDuration <= 15*time.Second && (o.Limits.MaxDuration == 0 || o.Limits.MaxDuration >= oldDuration), canCut: cut, canRevoke: revoke, canStall: stall, canLose: stall || revoke,
	} {
		if there {
			found |= ability
		}
	}
	return found
}
