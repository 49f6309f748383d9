package holder

import (
	"cmp"
	"time"

	"github.com/fencedlease/lease"
)

// A config says which events can happen, how often they can happen, and to which holders.
type config struct {
	name    string
	about   string
	holders int
	options [2]Options
	rates   [2]time.Duration // how far each holder's clock advances in a tick
	rate    time.Duration    // how far the authority's clock advances in a tick
	record  lease.Record     // the record at the beginning
	before  []string         // events before the search begins

	calls    [2]kinds // the calls that each holder makes
	cancels  bool     // whether evCancel is among the calls
	world    kinds    // the other events of the world
	together int      // the largest number of calls of one kind that wait at the same time
	bounds   bounds
	more     bounds // added to bounds by -explore.deep
	periods  []lease.Period

	rivalOwner    string
	rivalDuration time.Duration
	unsure        time.Duration // the time left minus the time that the authority guarantees
	hides         bool          // refusals do not show IDs
	silent        bool          // refusals show nothing
	unknown       error         // the error of a request of unknown outcome
	pauses        bool          // a machine may wake up late

	states  int // an ordinary run ends at this number of states
	deep    int // with -explore.deep the run ends at this number
	longest int // the number of ticks after which every finite lease and break has ended
}

func (c *config) deepBounds() bounds {
	b, m := c.bounds, c.more
	b.calls[0] += m.calls[0]
	b.calls[1] += m.calls[1]
	b.faults += m.faults
	b.ticks += m.ticks
	b.others += m.others
	b.reads += m.reads
	return b
}

// allows reports whether an event of the kind k can happen.
func (c *config) allows(k kind) bool { return (c.calls[0] | c.calls[1] | c.world).has(k) }

// plain returns options in whole ticks. With these options, a Session relies on a grant of 4 s for
// 3 s. Time passes in ticks of one second, so TestExplore does not explore what happens between two
// ticks.
func plain(owner string) Options {
	return Options{Owner: owner, Duration: 4 * time.Second, RenewInterval: time.Second, RequestTimeout: time.Second,
		RetryDelay: time.Second, Margin: time.Second, MaxClockJump: time.Minute}
}

// make completes a config.
func (c config) make() *config {
	c.holders = cmp.Or(c.holders, 1)
	for i := range c.options {
		if o := &c.options[i]; o.Duration == 0 {
			*o = plain([]string{"ada", "bob"}[i])
		}
		c.rates[i] = cmp.Or(c.rates[i], time.Second)
		c.cancels = c.cancels || c.calls[i].has(evCancel)
	}
	c.rate = cmp.Or(c.rate, time.Second)
	c.rivalDuration = cmp.Or(c.rivalDuration, 2*time.Second)
	c.rivalOwner = cmp.Or(c.rivalOwner, "rival")
	c.unknown = cmp.Or(c.unknown, errTimeout)
	c.together = cmp.Or(c.together, 1)
	c.states = cmp.Or(c.states, 20_000)
	if underRace {
		c.states = 2_000
	}
	c.deep = cmp.Or(c.deep, 500_000)
	c.longest = cmp.Or(c.longest, 8)
	c.more = cmp.Or(c.more, bounds{calls: [2]uint8{1}, faults: 1, ticks: 2})
	return &c
}

func infinite(o *Options) { o.Duration = lease.Infinite }

func window(o *Options) { o.StopWindow = time.Second }

// drifting allows the clocks to differ by a tenth.
func drifting(o *Options) {
	o.Duration, o.MaxClockDrift, o.Margin, o.StopWindow = 2*time.Second, 0.1, time.Millisecond, 500*time.Millisecond
	o.RenewInterval, o.RetryDelay, o.RequestTimeout = 500*time.Millisecond, 250*time.Millisecond, 250*time.Millisecond
}

// sameOwner gives both holders the same owner, and lets them take the lease over from each other.
func sameOwner(o *Options) { o.Owner, o.TakeOver = "ada", true }

// both changes the plain options of both holders.
func both(all ...func(*Options)) [2]Options {
	o := [2]Options{plain("ada"), plain("bob")}
	for _, f := range all {
		f(&o[0])
		f(&o[1])
	}
	return o
}

var (
	lossy  = of(evSilence, evLose, evDelay)
	always = of(evAcquire, evRelease)
	all    = of(evAcquire, evRelease, evClose, evReleaseUncertain, evWait, evDisclose, evHandOver, evCancel, evBind, evRead)
	absent lease.Period
	graces = []lease.Period{absent, lease.Grace(0), lease.Grace(time.Second), lease.Grace(3 * time.Second)}
)

// Together, the configs cover every feature. Each config is small, so that TestExplore can search
// its worlds to some depth.
var configs = []*config{
	config{
		name: "basic", about: "one holder and a rival, every call, a network that loses and delays",
		calls:  [2]kinds{of(evAcquire, evRelease, evClose, evReleaseUncertain, evWait, evCancel)},
		world:  lossy | of(evRival),
		bounds: bounds{calls: [2]uint8{4}, faults: 2, ticks: 5, others: 1},
	}.make(),
	config{
		name: "holding", about: "a holder that renews for a long time over a bad network",
		calls:  [2]kinds{always},
		world:  lossy | of(evDeliver),
		bounds: bounds{calls: [2]uint8{3}, faults: 3, ticks: 10},
	}.make(),
	config{
		name: "infinite", about: "a lease that never ends: orphans must be found and released",
		options: both(infinite),
		calls:   [2]kinds{of(evAcquire, evRelease, evReleaseUncertain, evCancel)},
		world:   lossy | of(evRival, evRetreat),
		bounds:  bounds{calls: [2]uint8{5}, faults: 2, ticks: 1, others: 2},
	}.make(),
	config{
		name: "queue", about: "several calls of each kind that wait at the same time",
		options:  both(infinite),
		calls:    [2]kinds{of(evAcquire, evRelease, evClose, evHandOver, evCancel, evReleaseUncertain, evWait)},
		world:    of(evLose, evSilence),
		together: 2,
		bounds:   bounds{calls: [2]uint8{5}, faults: 2}, more: bounds{calls: [2]uint8{2}},
	}.make(),
	config{
		name: "work", about: "contexts of WhileHeld, the stop window, and releases that wait for the work",
		options: both(window),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind, evStall, evClose)},
		world:   lossy | of(evRival),
		bounds:  bounds{calls: [2]uint8{4}, faults: 3, ticks: 9, others: 1},
	}.make(),
	config{
		name: "min-hold", about: "a lease that stays locked after its work",
		calls:  [2]kinds{of(evAcquire, evRelease, evReleaseUncertain, evClose, evHoldUntil)},
		world:  lossy | of(evRival),
		bounds: bounds{calls: [2]uint8{4}, faults: 2, ticks: 7, others: 1},
	}.make(),
	config{
		name: "late-work", about: "the same, from the moment at which a holder with work out has lost its lease",
		options: both(window),
		calls:   [2]kinds{of(evAcquire, evRelease, evReleaseUncertain, evDisclose, evHandOver, evBind)},
		world:   lossy | of(evRival, evDeliver),
		before:  []string{"a acquire", "exchange #1", "a bind", "tick", "delay #2", "tick", "tick"},
		bounds:  bounds{calls: [2]uint8{4}, faults: 2, ticks: 7, others: 1},
	}.make(),
	config{
		name: "infinite-work", about: "an infinite lease that is broken while work is out, after an Acquire in doubt",
		options: both(infinite, window),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind, evReleaseUncertain)},
		world:   lossy | of(evBreak, evRival),
		periods: graces[1:3],
		bounds:  bounds{calls: [2]uint8{5}, faults: 2, ticks: 3, others: 2},
	}.make(),
	config{
		name: "breaks", about: "breaks with every kind of period, shortened breaks, and watch signals",
		options: both(window, func(o *Options) { o.Duration, o.Margin = 6*time.Second, time.Second/2 }),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind, evRead)},
		world:   lossy | of(evBreak, evRival, evDeliver),
		periods: graces,
		bounds:  bounds{calls: [2]uint8{3}, faults: 1, ticks: 6, others: 2, reads: 1}, more: bounds{ticks: 2, faults: 1, others: 1, reads: 1},
	}.make(),
	config{
		name: "infinite-breaks", about: "the same of an infinite lease",
		options: both(infinite, window, func(o *Options) { o.Margin = time.Second / 2 }),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind, evRead)},
		world:   lossy | of(evBreak, evDeliver),
		periods: []lease.Period{absent, lease.Grace(0), lease.Grace(2 * time.Second), lease.Grace(4 * time.Second)},
		bounds:  bounds{calls: [2]uint8{3}, faults: 1, ticks: 7, others: 3, reads: 1}, more: bounds{ticks: 2, faults: 1, reads: 1},
	}.make(),
	config{
		name: "two", about: "two holders of equal owners that do not take over",
		holders: 2, options: both(func(o *Options) { o.Owner = "ada" }),
		calls:  [2]kinds{of(evAcquire, evRelease), of(evAcquire, evRelease, evCancel)},
		world:  lossy,
		bounds: bounds{calls: [2]uint8{2, 3}, faults: 2, ticks: 5},
	}.make(),
	config{
		name: "hand-over", about: "a hand-over to the other holder, or to an ID that it has retired",
		holders: 2,
		calls:   [2]kinds{of(evAcquire, evRelease, evHandOver, evCancel), of(evAcquire, evDisclose, evRelease)},
		world:   lossy,
		bounds:  bounds{calls: [2]uint8{4, 4}, faults: 2, ticks: 3},
	}.make(),
	config{
		name: "infinite-hand-over", about: "the same of an infinite lease, which may be broken",
		holders: 2, options: both(infinite),
		calls:   [2]kinds{of(evAcquire, evRelease, evHandOver, evBind), of(evAcquire, evDisclose, evRelease)},
		world:   lossy | of(evBreak),
		periods: graces[2:3],
		bounds:  bounds{calls: [2]uint8{4, 4}, faults: 2, ticks: 1, others: 1},
	}.make(),
	config{
		name: "take-over", about: "two processes of one owner that take over from each other",
		holders: 2, options: both(sameOwner),
		calls:  [2]kinds{of(evAcquire, evRelease, evCancel), always},
		world:  lossy | of(evDeliver),
		bounds: bounds{calls: [2]uint8{3, 2}, faults: 2, ticks: 3},
	}.make(),
	config{
		name: "infinite-take-over", about: "the same of an infinite lease, which may be broken, with contexts and signals",
		holders: 2, options: both(infinite, sameOwner),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind, evRead), of(evAcquire, evRelease, evCancel)},
		world:   lossy | of(evBreak),
		periods: graces[1:3],
		bounds:  bounds{calls: [2]uint8{3, 3}, faults: 2, ticks: 1, others: 1, reads: 1},
	}.make(),
	config{
		name: "stuck", about: "requests that are given up and return later, or never",
		options:  both(func(o *Options) { o.Duration = 6 * time.Second }),
		calls:    [2]kinds{of(evAcquire, evRelease, evCancel, evHandOver, evReleaseUncertain)},
		world:    of(evStick, evLose),
		together: 2,
		bounds:   bounds{calls: [2]uint8{5}, faults: 3, ticks: 4},
	}.make(),
	config{
		name: "infinite-stuck", about: "the same of an infinite lease",
		options: both(infinite),
		calls:   [2]kinds{of(evAcquire, evRelease, evCancel, evClose)},
		world:   of(evStick, evDelay, evRival, evRetreat),
		bounds:  bounds{calls: [2]uint8{5}, faults: 3, ticks: 1, others: 2},
	}.make(),
	config{
		name: "late-stuck", about: "an Acquire that was abandoned beside a renewal of the term before",
		options: both(infinite),
		before:  []string{"a acquire", "exchange #1", "tick", "a release", "exchange #3", "a acquire", "a release"},
		calls:   [2]kinds{of(evAcquire, evRelease)},
		world:   of(evStick, evDelay, evRival, evRetreat),
		bounds:  bounds{calls: [2]uint8{2}, faults: 3, ticks: 1, others: 2}, more: bounds{calls: [2]uint8{1}, ticks: 1},
	}.make(),
	config{
		name: "hidden", about: "an authority that does not show IDs when it refuses",
		holders: 2,
		hides:   true,
		options: both(sameOwner),
		calls:   [2]kinds{of(evAcquire, evRelease, evCancel, evBind), of(evAcquire, evRelease)},
		world:   lossy | of(evBreak),
		periods: graces[2:3],
		bounds:  bounds{calls: [2]uint8{3, 2}, faults: 2, ticks: 4, others: 1},
	}.make(),
	config{
		name: "infinite-hidden", about: "the same of an infinite lease",
		hides:   true,
		options: both(infinite),
		calls:   [2]kinds{of(evAcquire, evRelease, evCancel, evBind, evRead)},
		world:   lossy | of(evBreak, evRival, evRetreat),
		periods: graces[2:3],
		bounds:  bounds{calls: [2]uint8{4}, faults: 2, ticks: 1, others: 2, reads: 1},
	}.make(),
	config{
		name: "silent", about: "an authority whose refusals show nothing",
		silent:  true,
		calls:   [2]kinds{of(evAcquire, evRelease, evCancel, evBind)},
		world:   lossy | of(evBreak, evRival),
		periods: graces[1:3],
		bounds:  bounds{calls: [2]uint8{4}, faults: 2, ticks: 5, others: 2},
	}.make(),
	config{
		name: "unsure", about: "an authority without a clock, which makes less certain than is left",
		unsure:  3 * time.Second,
		options: both(func(o *Options) { o.Duration, o.StopWindow = 7*time.Second, 2*time.Second }),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind)},
		world:   lossy | of(evBreak, evDeliver),
		periods: graces,
		bounds:  bounds{calls: [2]uint8{3}, faults: 2, ticks: 6, others: 2}, more: bounds{ticks: 2, faults: 1},
	}.make(),
	config{
		name: "drift", about: "a fast authority, a slow holder and a fast one",
		holders: 2,
		rate:    275 * time.Millisecond,
		rates:   [2]time.Duration{225 * time.Millisecond, 275 * time.Millisecond},
		options: both(drifting),
		calls:   [2]kinds{of(evAcquire, evBind), of(evAcquire)},
		world:   lossy | of(evDeliver),
		bounds:  bounds{calls: [2]uint8{3, 1}, faults: 3, ticks: 11}, more: bounds{ticks: 3, faults: 1},
		longest: 14,
	}.make(),
	config{
		name: "duplicates", about: "requests that arrive once more",
		calls:  [2]kinds{of(evAcquire, evRelease, evCancel)},
		world:  of(evDuplicate, evDelay, evRival),
		bounds: bounds{calls: [2]uint8{4}, faults: 2, ticks: 4, others: 1},
	}.make(),
	config{
		name: "wrong-answers", about: "grants that show another ID or no record, refusals of what was granted, and requests that were not sent",
		options: both(infinite),
		unknown: lease.ErrConflict,
		calls:   [2]kinds{of(evAcquire, evRelease, evCancel)},
		world:   of(evGarble, evCorrupt, evRefuse, evBlank, evWithhold, evDelay),
		bounds:  bounds{calls: [2]uint8{4}, faults: 3, ticks: 3},
		states:  15_000, // each costs several times as much as elsewhere
	}.make(),
	config{
		name: "wrong-renewals", about: "the same of a finite lease",
		calls:  [2]kinds{always},
		world:  of(evGarble, evCorrupt, evRefuse, evSilence, evDeliver),
		bounds: bounds{calls: [2]uint8{2}, faults: 3, ticks: 8},
		states: 15_000, // each costs several times as much as elsewhere
	}.make(),
	config{
		name: "pauses", about: "the clock goes on though the machine is due: the wake-up can come at any later time",
		pauses:  true,
		options: both(window),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind)},
		world:   lossy | of(evDeliver, evBreak),
		periods: graces[2:3],
		bounds:  bounds{calls: [2]uint8{3}, faults: 2, ticks: 6, others: 1},
	}.make(),
	config{
		name: "closing", about: "Close at any point of everything else",
		options: both(infinite),
		calls:   [2]kinds{of(evAcquire, evRelease, evClose, evDisclose, evHandOver, evBind, evWait)},
		world:   lossy,
		bounds:  bounds{calls: [2]uint8{5}, faults: 2}, more: bounds{calls: [2]uint8{1}, faults: 1},
	}.make(),
	config{
		name: "rival-take-over", about: "a holder that takes over, and a rival of another owner or of none",
		options: both(sameOwner),
		calls:   [2]kinds{of(evAcquire, evRelease, evBind)},
		world:   lossy | of(evRival, evRetreat, evBreak),
		periods: graces[:3],
		bounds:  bounds{calls: [2]uint8{3}, faults: 1, ticks: 4, others: 3},
	}.make(),
	config{
		name: "same-owner-rival", about: "a holder that takes over from others of its owner, which come and go",
		options:       both(infinite, sameOwner),
		rivalOwner:    "ada",
		rivalDuration: lease.Infinite,
		calls:         [2]kinds{of(evAcquire, evRelease, evCancel)},
		world:         lossy | of(evRival, evRetreat, evDeliver),
		bounds:        bounds{calls: [2]uint8{3}, faults: 2, ticks: 1, others: 4},
	}.make(),
	config{
		name: "drift-work", about: "a fast holder that has lost its lease with work out, and a slow authority",
		rate:    225 * time.Millisecond,
		rates:   [2]time.Duration{275 * time.Millisecond, 275 * time.Millisecond},
		options: both(drifting),
		before:  []string{"a acquire", "exchange #1", "a bind"},
		calls:   [2]kinds{of(evAcquire, evRelease)},
		world:   of(evDelay, evSilence),
		bounds:  bounds{calls: [2]uint8{1}, faults: 2, ticks: 20},
		states:  35_000, // a deferred release is due late
		longest: 14,
	}.make(),
	config{
		name: "put-off", about: "renewals that wait before they are sent, a fast holder with work, and a rival",
		rate:    225 * time.Millisecond,
		rates:   [2]time.Duration{275 * time.Millisecond, 275 * time.Millisecond},
		options: both(drifting),
		before:  []string{"a acquire", "exchange #1", "a bind", "tick", "tick"},
		calls:   [2]kinds{of(evRelease)},
		world:   of(evPutOff, evDelay, evSilence, evRival),
		bounds:  bounds{calls: [2]uint8{1}, faults: 2, ticks: 16, others: 1},
		longest: 14,
	}.make(),
	config{
		name: "everything", about: "all of the above, for random walks",
		holders: 2, options: both(sameOwner, window, func(o *Options) { o.Duration = 6 * time.Second }),
		calls:    [2]kinds{all, all},
		world:    lossy | of(evRival, evRetreat, evBreak, evDeliver, evStick, evGarble, evCorrupt, evRefuse, evBlank, evWithhold),
		states:   30_000, // fewer leave an event out
		together: 2,
		periods:  graces,
		bounds:   bounds{calls: [2]uint8{3, 3}, faults: 2, ticks: 4, others: 2, reads: 1},
	}.make(),
	config{
		name: "infinite-everything", about: "the same of an infinite lease",
		holders: 2, options: both(infinite, sameOwner, window),
		calls:    [2]kinds{all, all},
		world:    lossy | of(evRival, evRetreat, evBreak, evStick),
		together: 2,
		periods:  graces,
		bounds:   bounds{calls: [2]uint8{3, 3}, faults: 2, ticks: 2, others: 2, reads: 1},
	}.make(),
}
