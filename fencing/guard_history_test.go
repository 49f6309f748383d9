package fencing_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A guard is a correct guard, or a guard with a bug.
type guard interface {
	Advance(lease.Token) error
	Do(lease.Token, func() error) error
	Seen() lease.Token
}

// A call is made with a token at a certain time. It writes for a certain duration. If the duration
// is 0, it calls Advance.
type call struct {
	At, Takes time.Duration
	Token     lease.Token
	Ends      string // "", "error" or "panic"
}

func (c call) advances() bool { return c.Takes == 0 }

// An outcome of a history: the calls that were admitted, in the order in which they ended, the error of
// each call, and the last mark.
type outcome struct {
	Through  []int
	Returned []string
	Seen     lease.Token
}

// histories draws calls that begin at multiples of 1 us. A write takes a multiple of 1 us plus 1
// ns, so that no call begins at the instant at which another call ends.
func histories() *rapid.Generator[[]call] {
	return rapid.Custom(func(t *rapid.T) []call {
		calls := make([]call, rapid.IntRange(1, 12).Draw(t, "calls"))
		var at time.Duration
		for i := range calls {
			at += time.Duration(rapid.IntRange(1, 3).Draw(t, "gap")) * time.Microsecond
			calls[i] = call{At: at, Token: tok(rapid.Uint64Range(7, 12).Draw(t, "epoch"))}
			switch rapid.IntRange(0, 7).Draw(t, "kind") {
			case 0:
				calls[i].Token = rapid.SampledFrom(malformed).Draw(t, "malformed")
			case 1, 2:
				continue
			}
			calls[i].Takes = time.Duration(rapid.IntRange(0, 6).Draw(t, "takes"))*time.Microsecond + 1
			calls[i].Ends = rapid.SampledFrom([]string{"", "", "error", "panic"}).Draw(t, "ends")
		}
		return calls
	})
}

// play makes the calls to a guard. It returns the outcome, and whether two functions ran at the
// same time.
func play(t *testing.T, newGuard func() guard, calls []call) (o outcome, overlap bool) {
	o.Returned = make([]string, len(calls))
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		var mu sync.Mutex
		running := 0
		var wg sync.WaitGroup
		for i, c := range calls {
			wg.Go(func() {
				time.Sleep(c.At)
				defer func() {
					if p := recover(); p != nil {
						o.Returned[i] = fmt.Sprint("panic: ", p)
					}
				}()
				var err error
				if c.advances() {
					if err = g.Advance(c.Token); err == nil {
						mu.Lock()
						o.Through = append(o.Through, i)
						mu.Unlock()
					}
				} else {
					err = g.Do(c.Token, func() error {
						mu.Lock()
						running++
						overlap = overlap || running > 1
						mu.Unlock()
						time.Sleep(c.Takes)
						mu.Lock()
						running--
						o.Through = append(o.Through, i) // a later call sees the write of call i
						mu.Unlock()
						switch c.Ends {
						case "error":
							return errWrite
						case "panic":
							panic(errWrite)
						}
						return nil
					})
				}
				o.Returned[i] = fmt.Sprint(err)
			})
		}
		wg.Wait()
		o.Seen = g.Seen()
	})
	return o, overlap
}

// model is a simple guard to compare with. It plays the calls one after the other, with a list of
// the waiting calls and the newest token so far.
func model(calls []call) outcome {
	o := outcome{Returned: make([]string, len(calls))}
	var waiting []int
	busy := -1
	var until time.Duration
	begin := func(now time.Duration) {
		for busy < 0 && len(waiting) > 0 {
			i := waiting[0]
			waiting = waiting[1:]
			if calls[i].Token < o.Seen {
				o.Returned[i] = (&fencing.StaleError{Shown: calls[i].Token, Seen: o.Seen}).Error()
				continue
			}
			if calls[i].advances() {
				o.Through, o.Returned[i] = append(o.Through, i), "<nil>"
				continue
			}
			busy, until = i, now+calls[i].Takes
		}
	}
	finish := func(now time.Duration) {
		for busy >= 0 && until <= now {
			o.Through = append(o.Through, busy)
			o.Returned[busy] = map[string]string{"": "<nil>", "error": errWrite.Error(), "panic": "panic: " + errWrite.Error()}[calls[busy].Ends]
			busy = -1
			begin(until)
		}
	}
	for i, c := range calls {
		finish(c.At)
		if err := c.Token.Validate(); err != nil {
			o.Returned[i] = err.Error()
			continue
		}
		if c.Token < o.Seen { // well-formed tokens sort as strings
			o.Returned[i] = (&fencing.StaleError{Shown: c.Token, Seen: o.Seen}).Error()
			continue
		}
		o.Seen = c.Token
		waiting = append(waiting, i)
		begin(c.At)
	}
	finish(1 << 62)
	return o
}

// Random histories have the same outcome as in the model, and no two functions run at the same time.
//
// SPEC G1, G4.
func TestGuardHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		calls := histories().Draw(rt, "history")
		o, overlap := play(t, func() guard { return new(fencing.Guard) }, calls)
		if want := model(calls); overlap || !reflect.DeepEqual(o, want) {
			rt.Fatalf("overlap %v\ngot  %+v\nwant %+v", overlap, o, want)
		}
	})
}

// Random histories find the bugs that are planted in guards, and none in a guard without a bug.
//
// SPEC G1, G4.
func TestHistoriesFindPlantedBugs(t *testing.T) {
	for name, newGuard := range brokenGuards {
		t.Run(name, func(t *testing.T) {
			const most = 500
			found := 0
			for seed := range most {
				calls := histories().Example(seed)
				if o, overlap := play(t, newGuard, calls); overlap || !reflect.DeepEqual(o, model(calls)) {
					found++
				}
			}
			if (found > 0) != (name != "no bug") {
				t.Errorf("%d of %d histories are wrong", found, most)
			}
		})
	}
}

// planted is a guard with a switch for every bug.
type planted struct {
	turn chan struct{} // if nil, f runs without waiting for its turn
	mu   sync.Mutex
	mark lease.Token

	older         func(shown, mark lease.Token) bool // reports whether shown is older than mark; default: by Compare
	noAdvance     bool                               // Advance does nothing
	noRecheck     bool                               // does not compare the token again after the wait
	forgets       bool                               // lowers the mark again if f fails
	raisesAfter   bool                               // raises the mark when f has returned
	takesAnything bool                               // does not check whether a token is well-formed
	pinned        bool                               // checks the token only after raising the mark
}

func (g *planted) Seen() lease.Token { g.mu.Lock(); defer g.mu.Unlock(); return g.mark }

func (g *planted) Advance(tok lease.Token) error {
	if g.noAdvance {
		return tok.Validate()
	}
	return g.Do(tok, func() error { return nil })
}

func (g *planted) Do(tok lease.Token, f func() error) error {
	if err := tok.Validate(); err != nil && !g.takesAnything && !g.pinned {
		return err
	}
	before, err := g.show(tok, !g.raisesAfter)
	if err != nil {
		return err
	}
	if err := tok.Validate(); err != nil && g.pinned {
		return err
	}
	if g.turn != nil {
		g.turn <- struct{}{}
		defer func() { <-g.turn }()
	}
	if !g.noRecheck {
		if _, err := g.show(tok, false); err != nil {
			return err
		}
	}
	err = f()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.raisesAfter {
		g.mark = tok
	}
	if err != nil && g.forgets {
		g.mark = before
	}
	return err
}

func (g *planted) show(tok lease.Token, raise bool) (before lease.Token, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before = g.mark
	older := g.older
	if older == nil {
		older = func(shown, mark lease.Token) bool { return shown.Compare(mark) < 0 }
	}
	if older(tok, before) {
		return before, &fencing.StaleError{Shown: tok, Seen: before}
	}
	if raise {
		g.mark = tok
	}
	return before, nil
}

func oneSlot() chan struct{} { return make(chan struct{}, 1) }

func asStrings(shown, mark lease.Token) bool { return shown < mark }

var brokenGuards = map[string]func() guard{
	"no bug":                          func() guard { return &planted{turn: oneSlot()} },
	"nothing between check and write": func() guard { return new(planted) },
	"forgets the mark on an error":    func() guard { return &planted{turn: oneSlot(), forgets: true} },
	"raises the mark after the write": func() guard { return &planted{turn: oneSlot(), raisesAfter: true} },
	"Advance does nothing":            func() guard { return &planted{turn: oneSlot(), noAdvance: true} },
	"does not look again":             func() guard { return &planted{turn: oneSlot(), noRecheck: true} },
	"takes malformed tokens":          func() guard { return &planted{turn: oneSlot(), takesAnything: true, older: asStrings} },
	"a malformed token pins the mark": func() guard { return &planted{turn: oneSlot(), pinned: true, older: asStrings} },
	"unpadded strings": func() guard {
		return &planted{turn: oneSlot(), older: func(shown, mark lease.Token) bool {
			return strings.TrimLeft(string(shown), "0") < strings.TrimLeft(string(mark), "0")
		}}
	},
	"refuses equal tokens": func() guard {
		return &planted{turn: oneSlot(), noRecheck: true, older: func(shown, mark lease.Token) bool { return shown.Compare(mark) <= 0 }}
	},
}
