package shards

import (
	"flag"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seed = flag.Uint64("shards.seed", 0, "of TestSimulate; 0 draws one")
	days = flag.Int("shards.days", 1, "that TestSimulate simulates")
	wide = flag.Bool("shards.wide", false, "simulate 1,000 shards and 20 processes")
)

// Random processes join, leave, crash, are cut off from the store and are paused, their work is slow to
// stop or hangs, and clocks drift. After each event the shares are balanced in time. Two processes never
// work on one shard, except while one is paused. Tokens never fall.
//
//	go test -run Simulate ./shards -shards.days 100 -shards.wide -shards.seed 1 -timeout 0
func TestSimulate(t *testing.T) {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	shards, processes, d := 40, 6, 10*time.Minute
	if *wide {
		shards, processes, d = 1000, 20, time.Hour
	}
	t.Logf("-shards.seed %d", s)
	synctest.Test(t, func(t *testing.T) {
		dice := rand.New(rand.NewPCG(s, 1))
		c := newTown(t, shards, d)
		drift := func() float64 {
			if dice.IntN(2) == 0 {
				return 0
			}
			return (dice.Float64() - 0.5) * 0.0018
		}
		for range processes {
			c.start(drift(), nil)
		}
		o, err := c.options.complete()
		if err != nil {
			t.Fatal(err)
		}
		i := o.Interval
		events, longest := map[string]int{}, time.Duration(0)
		time.Sleep(2*i + 10*time.Second) // the works of a process that crashes while all start would count as moves
		var refusing time.Time           // until when a process may refuse a shard: its work failed there, or still hangs
		for end := time.Now().Add(time.Duration(*days) * 24 * time.Hour); time.Now().Before(end) && !t.Failed(); {
			p := c.procs[dice.IntN(len(c.procs))]
			settle := 2*i + 10*time.Second // the bound that the documentation states
			event := [...]string{"join", "leave", "crash", "cut", "pause", "slow", "hang", "quiet", "fail"}[dice.IntN(9)]
			if len(c.procs) <= processes/2 {
				event = "join"
			} else if len(c.procs) >= processes+processes/2 && event == "join" {
				event = "leave"
			}
			events[event]++
			c.longest = 0
			switch event {
			case "join":
				c.start(drift(), nil)
			case "leave":
				p.leave()
			case "crash":
				p.crash()
				settle += d
			case "cut", "pause": // a process without a clock of its own cannot be paused
				pause := event == "pause" && p.clock != nil
				p.cut.Store(true)
				if p.paused.Store(pause); pause {
					p.clock.Pause()
				}
				time.Sleep(time.Duration(dice.Int64N(int64(2 * d))))
				if p.cut.Store(false); pause {
					p.clock.Resume()
				}
				time.Sleep(time.Second)
				p.paused.Store(false)
				settle += d + 2*i
			case "slow", "hang":
				most := o.Grace / 2
				settle += most + trial*d // a new process may not know for how long the others have had their shards
				if event == "hang" {
					most = 4 * o.Grace
					settle += 2*i + o.Grace + d
				}
				p.stop.Store(dice.Int64N(int64(most)))
				c.start(drift(), nil)
				if len(c.procs) > processes {
					time.Sleep(settle)
					c.expectBalance(0, event)
					// A process cannot take a shard while its old work on it still hangs. Another takes it.
					settle = time.Duration(patience+len(c.procs)) * i
					c.procs[len(c.procs)-1].leave()
				}
				p.stop.Store(0)
				if until := time.Now().Add(5*o.Grace + trial*d); until.After(refusing) {
					refusing = until
				}
			case "fail":
				p.failOne()
				refusing = time.Now().Add(10*d + trial*d)
				time.Sleep(2*d + 12*i)
				p.fails.Store("")
			}
			w := c.world()
			needed, before := len(plan(w.members, w.shards)), c.works()
			refused := time.Now().Before(refusing)
			if refused {
				settle += time.Duration(patience+len(c.procs))*i + trial*d
			}
			if time.Sleep(settle); c.unbalanced() != "" && c.hasTaken() {
				time.Sleep(trial * d)
			}
			c.expectBalance(0, event)
			longest = max(longest, c.longest)
			bound := map[string]time.Duration{"join": i, "leave": i, "quiet": 0, "crash": d + i}
			if most, ok := bound[event]; ok && !refused && c.longest > most+10*time.Second {
				c.fault("%s: a shard was idle for %v", event, c.longest)
			}
			if moves := c.works() - before; moves > needed+needed/20 && bound[event] > 0 && !refused {
				c.fault("%s: %d moves, and %d were needed", event, moves, needed)
			}
			time.Sleep(time.Duration(dice.Int64N(int64(4 * d))))
		}
		passed := time.Since(c.began)
		t.Logf("%v: events %v, %d works began, longest idle %v, %d requests, %d lists", passed.Round(time.Hour), events, c.moves, longest, c.requests.Load(), c.lists.Load())
		c.end()
	})
}

// hasTaken reports whether a process has taken a shard in place of another.
func (c *town) hasTaken() bool {
	for e := range c.store.List(c.t.Context(), "t/shards/") {
		if _, _, order, ok := parseShard(e.Record.Owner); ok && order == 0 && e.Record.State.Locked() {
			return true
		}
	}
	return false
}

// works returns how often a work began.
func (c *town) works() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moves
}

// TestCurve prints the requests that a balanced group with the default options sends in a minute. With
// -shards.wide, it also tries 10,000 shards.
func TestCurve(t *testing.T) {
	for _, n := range []int{100, 1000, 10_000} {
		for _, processes := range []int{3, 20, 100} {
			if n*processes > 2000 && !*wide {
				continue
			}
			inTown(t, n, func(c *town) {
				c.settle(processes)
				time.Sleep(duration)
				c.requests.Store(0)
				c.lists.Store(0)
				time.Sleep(time.Minute)
				renewals, lists := int(c.requests.Load()), int(c.lists.Load())
				if most := (n+processes)*60/9 + 1; renewals > most+n/10 || lists > 12*processes {
					t.Error("too many requests")
				}
				t.Logf("%d shards, %d processes: %d renewals and %d lists", n, processes, renewals, lists)
			})
		}
	}
}
