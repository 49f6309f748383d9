package holder

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	deep = flag.Bool("explore.deep", os.Getenv("EXPLORE_DEEP") != "", "explore up to 500,000 states in each configuration; TestPlantedBugs plants every bug")
	save = flag.String("explore.save", "", "the directory for interaction files of what is found")
)

// TestExplore tries the orders of events breadth-first. In each configuration, it ends when it has
// found all states within the bounds of the configuration, or has reached the configuration's
// number of states. It logs which searches ended because of the number of states. TestExplore
// copies worlds, does not replay them, and visits each world once.
//
// With -cover it reaches every statement of the machine but these: what a full ledger does
// (TestFullLedger, TestDroppedClaim), Elapsed after a jump of the wall clock (TestElapsed), CanAcquire
// (TestWaitReturnsToTry), and a lease that is broken during a take-over, which only -explore.deep reaches.
func TestExplore(t *testing.T) {
	var (
		mu                  sync.Mutex
		all                 []string
		states, transitions int
	)
	t.Cleanup(func() {
		slices.Sort(all)
		t.Logf("%d states, %d transitions\n%s", states, transitions, strings.Join(all, "\n"))
	})
	for _, c := range configs {
		t.Run(c.name, func(t *testing.T) {
			if !*deep {
				t.Parallel()
			}
			limit := c.states
			if *deep {
				c.bounds, limit = c.deepBounds(), c.deep
			}
			s := explore(c, limit)
			whole := ""
			if s.unfinished {
				whole = ", up to the bound of states"
			}
			mu.Lock()
			states, transitions = states+len(s.seen), transitions+s.transitions
			all = append(all, fmt.Sprintf("%s: %d states, %d transitions, depth %d%s", c.name, len(s.seen), s.transitions, s.depth, whole))
			mu.Unlock()
			if s.found == nil {
				for k := evAcquire; k <= evTick; k++ {
					if !underRace && c.allows(k) && !s.happened.has(k) { // under the race detector, too few states are explored
						t.Errorf("%s: the configuration has the event %q, and it never happened", c.name, verbs[k])
					}
				}
				return
			}
			t.Errorf("property %s: %s\n%s", s.found.property, s.found.text, s.story())
			if *save != "" {
				file := filepath.Join(*save, c.name+"-"+s.found.property+".txt")
				if err := os.WriteFile(file, []byte(s.story()), 0o666); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A search is breadth-first, so that no shorter path leads to the problem that it finds.
type search struct {
	happened kinds // the events that were tried
	cfg      *config
	seen     set
	healed   set
	parents  []uint32 // the parent of each node
	by       []event  // the event that leads from the parent to each node
	free     []*world
	path     []uint64
	spare    []event

	transitions, depth int
	unfinished         bool
	found              *problem
	trail              []event // the path to the problem that was found
}

func newSearch(c *config) *search { return &search{cfg: c, seen: set{}, healed: set{}} }

func (s *search) copy(w *world) *world {
	var c *world
	if n := len(s.free); n > 0 {
		c, s.free = s.free[n-1], s.free[:n-1]
	} else {
		c = new(world)
	}
	w.copyTo(c)
	return c
}

func (s *search) recycle(w *world) { s.free = append(s.free, w) }

func explore(c *config, limit int) *search {
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	s := newSearch(c)
	w := s.first()
	s.seen.add(w.whole(w.healing()))
	s.parents, s.by = append(s.parents, 0), append(s.by, event{})
	level := []*world{w}
	for len(level) > 0 && s.found == nil && !s.unfinished {
		var next []*world
		for i, w := range level {
			if len(s.seen) >= limit {
				s.unfinished = true
				break
			}
			next = s.expand(w, next)
			if s.found != nil {
				return s
			}
			level[i] = nil
			s.recycle(w)
		}
		if len(next) > 0 {
			s.depth++
		}
		level = next
	}
	return s
}

// first returns the world in which a search begins.
func (s *search) first() *world {
	w := newWorld(s.cfg)
	for _, text := range s.cfg.before {
		e, err := w.parse(text)
		if err != nil {
			panic(err)
		}
		w.do(e)
	}
	w.left, w.faulty = s.cfg.bounds, false
	return w
}

// expand visits the worlds that follow the world w.
func (s *search) expand(w *world, next []*world) []*world {
	s.spare = w.events(s.spare)
	for _, e := range s.spare {
		c := s.copy(w)
		s.transitions++
		s.happened |= of(e.kind)
		s.visit(c, e)
		healing := c.healing()
		isNew := c.problem == nil && s.seen.add(c.whole(healing))
		if isNew {
			c.node = uint32(len(s.parents))
			s.parents, s.by = append(s.parents, w.node), append(s.by, e)
			s.mend(c, healing)
		}
		if c.problem != nil {
			s.found = c.problem
			if !isNew {
				s.trail = append(s.to(w.node), e)
			} else {
				s.trail = s.to(c.node)
			}
			return next
		}
		if isNew {
			next = append(next, c)
		} else {
			s.recycle(c)
		}
	}
	return next
}

// visit lets an event happen, and mend lets the network heal. A panic is a problem of the world.
func (s *search) visit(w *world, e event) {
	defer w.catch()
	w.step(e)
}

func (s *search) mend(w *world, healing uint64) {
	defer w.catch()
	s.heal(w, healing)
}

func (w *world) catch() {
	if r := recover(); r != nil {
		w.problem = &problem{"panic", fmt.Sprint(r, "\n", string(debug.Stack()))}
	}
}

// to returns the path to a node.
func (s *search) to(node uint32) []event {
	var l []event
	for node != 0 {
		l = append([]event{s.by[node]}, l...)
		node = s.parents[node]
	}
	return l
}

// story returns the path to the problem that was found, as an interaction file.
func (s *search) story() string {
	w := newWorld(s.cfg)
	w.script = new(script)
	w.heading(s.found.property + ": " + strings.SplitN(s.found.text, "\n", 2)[0])
	w.script.command("config " + s.cfg.name)
	w.script.result("")
	for _, text := range s.cfg.before {
		e, _ := w.parse(text)
		s.visit(w, e)
	}
	w.left, w.faulty = s.cfg.bounds, false
	for _, e := range s.trail {
		s.visit(w, e)
	}
	if w.problem == nil {
		again := newSearch(s.cfg)
		again.mend(w, w.healing())
	}
	return w.script.file.String()
}
