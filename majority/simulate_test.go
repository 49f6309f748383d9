package majority

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasefault"
	"github.com/fencedlease/lease/memory"
)

// splits returns all ways to split n members into parts: the number of the part of each member.
func splits(n int) (all [][]int) {
	var grow func(parts []int, next int)
	grow = func(parts []int, next int) {
		if len(parts) == n {
			all = append(all, slices.Clone(parts))
			return
		}
		for p := range next + 1 {
			grow(append(parts, p), max(next, p+1))
		}
	}
	grow(nil, 0)
	return all
}

// seen returns what the member i sees in a split.
func seen(parts []int, i int) (v View) {
	for j, p := range parts {
		if name := string(rune('a' + j)); p == parts[i] {
			v.Reachable = append(v.Reachable, name)
		} else {
			v.Unreachable = append(v.Unreachable, name)
		}
	}
	return v
}

// pause is the fault of a process that stops for d in the middle of a request, with its clock running.
func pause(d time.Duration, before bool) leasefault.Fault {
	return func(ctx context.Context, c *leasefault.Call) error {
		if before {
			time.Sleep(d)
			return c.Send(context.WithoutCancel(ctx))
		}
		err := c.Send(ctx)
		time.Sleep(d)
		return err
	}
}

// A cluster has members that decide in earlier splits, whose views may change, and then in the last one.
type cluster struct {
	t      *testing.T
	r      *rand.Rand
	faulty float64 // the probability of a fault, for each request
	late   bool    // requests can also be carried out late or twice; tokens are then not checked
	plant  func(*Decider)
	store  lease.Authority
}

func (c *cluster) member(i int) *Decider {
	var late []leasefault.Fault
	for _, d := range []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, 80 * time.Second} {
		late = append(late, leasefault.Detach(c.t, leasefault.DelayRequest(d)), leasefault.DelayAnswer(d/10), pause(d, true), pause(d, false))
	}
	faults := []leasefault.Fault{leasefault.LoseRequest, leasefault.LoseAnswer, leasefault.FailRequest, leasefault.FailAnswer}
	if c.late {
		faults = append(append(late, leasefault.Duplicate, leasefault.Repeat(c.t, leasefault.DelayRequest(c.upTo(30*time.Second)))), faults...)
	}
	a := leasefault.Script(c.store, leasefault.Always(leasefault.Any, leasefault.Random(c.r.Uint64(), c.faulty, faults...)))
	d := newDecider(c.t, a, string(rune('a'+i)))
	if c.plant != nil {
		c.plant(d)
	}
	return d
}

func (c *cluster) upTo(d time.Duration) time.Duration { return time.Duration(c.r.Int64N(int64(d) + 1)) }

// decide lets all members decide, within Spread of each other. With early, the views change at a random time.
func (c *cluster) decide(members []*Decider, parts []int, early bool) []Outcome {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	if early {
		defer time.AfterFunc(c.upTo(30*time.Second), cancel).Stop()
	}
	outcomes, done := make([]Outcome, len(members)), make(chan struct{})
	spread := []time.Duration{0, time.Second, 20 * time.Second}[c.r.IntN(3)]
	for i, d := range members {
		begin := time.Duration(0)
		if c.faulty > 0 {
			begin = c.upTo(spread)
		}
		go func() {
			defer func() { done <- struct{}{} }()
			time.Sleep(begin)
			outcomes[i], _ = d.Decide(ctx, seen(parts, i))
		}()
	}
	for range members {
		<-done
	}
	return outcomes
}

// run returns the outcomes of the last split, and whether members of two parts survived in it, or members
// of one with different tokens, or with one that is not newer than those of earlier splits.
func (c *cluster) run(parts []int) (outcomes []Outcome, two bool) {
	var members []*Decider
	var newest lease.Token         // of all survivors of earlier splits
	unaware := map[int]time.Time{} // a member that may not know the token of an earlier split
	for i := range parts {
		members = append(members, c.member(i))
	}
	if c.faulty > 0 {
		for range c.r.IntN(3) {
			earlier := parts
			if all := splits(len(parts)); c.r.IntN(2) == 0 {
				earlier = all[c.r.IntN(len(all))]
			}
			outcomes := c.decide(members, earlier, c.r.IntN(2) == 0)
			for _, out := range outcomes {
				if out.Token.Compare(newest) > 0 {
					newest = out.Token
				}
			}
			for i, out := range outcomes {
				if delete(unaware, i); out.Decision == Down || c.r.IntN(4) == 0 {
					members[i] = c.member(i)
					for members[i].Check(c.t.Context()) != nil {
						time.Sleep(time.Second)
					}
				} else if out.Decision != Survive || out.Token != newest { // it was undecided, now or before
					unaware[i] = time.Now()
				}
			}
			time.Sleep(c.upTo([]time.Duration{0, 10 * time.Second, time.Minute}[c.r.IntN(3)]))
		}
		if c.r.IntN(10) == 0 { // a stranger has the lease
			_, _ = c.store.Do(c.t.Context(), "cluster", lease.Request{Action: acquire, Proposed: lease.ID{9}, Duration: 1 + c.upTo(30*time.Second)})
		}
	}
	for i, at := range unaware {
		if time.Since(at) >= members[i].window {
			delete(unaware, i)
		}
	}
	outcomes = c.decide(members, parts, false)
	read := map[lease.Token]bool{}
	for i, out := range outcomes {
		if out.Decision == Survive {
			tok, err := newDecider(c.t, c.store, string(rune('a'+i))).Token(c.t.Context(), seen(parts, i))
			read[tok] = true
			two = two || err == nil && !c.late && (len(read) > 1 || tok.Compare(newest) < 0 || tok.Compare(out.Token) < 0)
		}
	}
	time.Sleep(5 * time.Minute) // until all late requests and releases have ended
	part, tok := -1, lease.Token("")
	for i, out := range outcomes {
		if out.Decision != Survive {
			continue
		}
		two = two || part >= 0 && part != parts[i]
		part = parts[i]
		if _, ok := unaware[i]; !ok && !c.late {
			two = two || out.Token.Compare(newest) <= 0 || tok != "" && tok != out.Token
			tok = out.Token
		}
	}
	return outcomes, two
}

// simulate runs all splits of two to five members with a seed, and returns the first that is wrong.
func simulate(t *testing.T, seed uint64, plant func(*Decider)) (runs, survived int, found string) {
	for n := 2; n <= 5; n++ {
		for i, parts := range splits(n) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(100*n+i)))
				c := &cluster{t: t, r: r, faulty: []float64{0.05, 0.2, 0.5}[r.IntN(3)], late: r.IntN(3) > 0, plant: plant, store: memory.New(nil).Authority()}
				outcomes, two := c.run(parts)
				runs++
				if slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Decision == Survive }) {
					survived++
				}
				if two {
					found = fmt.Sprintf("seed %d, split %v: the outcomes are %v", seed, parts, outcomes)
				}
			})
			if found != "" {
				return runs, survived, found
			}
		}
	}
	return runs, survived, ""
}

func TestNeverTwoSurvivors(t *testing.T) {
	seeds := 50
	if testing.Short() {
		seeds = 10
	}
	first, runs, survived := rand.Uint64(), 0, 0
	for i := range seeds {
		n, s, found := simulate(t, first+uint64(i), nil)
		if runs, survived = runs+n, survived+s; found != "" {
			t.Fatal(found)
		}
	}
	t.Logf("seeds from %d: %d splits, %d with a survivor", first, runs, survived)
	if survived < runs/4 {
		t.Errorf("only %d of %d splits have a survivor: the simulation tests little", survived, runs)
	}
}

// TestSurvivors has no faults: a part with the majority survives, and otherwise one part, with all of
// its members and with one token.
func TestSurvivors(t *testing.T) {
	for n := 2; n <= 5; n++ {
		for _, parts := range splits(n)[1:] {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{t: t, r: rand.New(rand.NewPCG(1, 2)), store: memory.New(nil).Authority()}
				outcomes, two := c.run(parts)
				winner := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Decision == Survive })
				if winner < 0 || two {
					t.Fatalf("split %v: the outcomes are %v", parts, outcomes)
				}
				for i, out := range outcomes {
					want := Outcome{Decision: Down}
					if parts[i] == parts[winner] {
						want = outcomes[winner]
					}
					if v := seen(parts, i); 2*len(v.Reachable) > n {
						want.Decision = Survive
					}
					if out != want {
						t.Errorf("split %v: member %d: %v, want %v", parts, i, out, want)
					}
				}
			})
		}
	}
}

// TestReachableSide has a minority that alone reaches the store and survives, and then another split.
func TestReachableSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, r: rand.New(rand.NewPCG(1, 2)), store: memory.New(nil).Authority()}
		members := make([]*Decider, 5)
		for i := range members {
			if members[i] = c.member(i); i < 3 {
				members[i].authority = leasefault.Script(c.store, leasefault.Always(leasefault.Any, leasefault.FailRequest))
			}
		}
		for _, round := range []struct {
			parts []int
			want  []Decision
		}{
			{[]int{0, 0, 0, 1, 1}, []Decision{Down, Down, Down, Survive, Survive}},
			{[]int{0, 1, 1, 1, 0}, []Decision{Down, Survive, Survive, Survive, Down}},
		} {
			for i, out := range c.decide(members, round.parts, false) {
				if out.Decision != round.want[i] {
					t.Errorf("split %v: member %d: %v, want %v", round.parts, i, out.Decision, round.want[i])
				}
			}
			time.Sleep(10 * time.Second) // until the releases have ended
			for i := range 3 {           // they restart, and reach the store
				members[i] = c.member(i)
			}
		}
	})
}

// bugs are mistakes in the decision. The simulation must find two survivors with each of them.
var bugs = map[string]func(*Decider){
	"an unknown outcome counts as a grant": judges(func(_ *Decider, _ *View, o observation, s step) step {
		if o.asked && o.unknown() {
			return survive
		}
		return s
	}),
	"no answer means survival": judges(func(_ *Decider, _ *View, o observation, s step) step {
		if o.unknown() {
			return survive
		}
		return s
	}),
	"a late grant is believed": func(d *Decider) {
		d.judge = func(d *Decider, v *View, o observation) step {
			o.late = false
			return judge(d, v, o)
		}
	},
	"a claim is followed": judges(func(_ *Decider, v *View, o observation, s step) step {
		for _, m := range v.Reachable {
			if o.err == nil && !o.asked && o.res.Record.State.Locked() && o.res.Record.Owner == claim(m) {
				return survive
			}
		}
		return s
	}),
	"every mark is followed": judges(func(_ *Decider, _ *View, o observation, s step) step {
		if !o.late && o.err == nil && o.res.Record.State.Locked() {
			return survive
		}
		return s
	}),
	"the mark of an earlier split is followed": func(d *Decider) {
		d.judge = func(d *Decider, v *View, o observation) step {
			forgetful := *d
			forgetful.newest = ""
			return judge(&forgetful, v, o)
		}
	},
	"a mark that soon ends is followed": func(d *Decider) { d.window = time.Second },
	"the lease is too short":            func(d *Decider) { d.window, d.hold = time.Second, d.limit },
	"members share an ID":               func(d *Decider) { d.newID = func() lease.ID { return lease.ID{1} } },
	"a member has one ID for all attempts": func(d *Decider) {
		d.newID = func() lease.ID { return lease.ID{d.self[0]} }
	},
	"a grant is released when it is believed": func(d *Decider) { d.authority = hasty{d.authority} },
}

// judges returns a plant for a judge that changes what judge says.
func judges(change func(*Decider, *View, observation, step) step) func(*Decider) {
	return func(d *Decider) {
		d.judge = func(d *Decider, v *View, o observation) step { return change(d, v, o, judge(d, v, o)) }
	}
}

// hasty releases a lease one second after its grant.
type hasty struct{ lease.Authority }

func (h hasty) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	res, err := h.Authority.Do(ctx, name, req)
	if err == nil && req.Action == acquire {
		ctx := context.WithoutCancel(ctx)
		time.AfterFunc(time.Second, func() {
			_, _ = h.Authority.Do(ctx, name, lease.Request{Action: release, ID: req.Proposed})
		})
	}
	return res, err
}

func TestPlantedBugs(t *testing.T) {
	const seeds = 400
	for name, plant := range bugs {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds) {
				if _, _, found := simulate(t, seed, plant); found != "" {
					t.Log(found)
					return
				}
			}
			t.Errorf("%d seeds do not find the bug", seeds)
		})
	}
}
