package fencing_test

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A call is made with a token at a certain time, and writes for a duration. If that is 0, it calls Advance.
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

// histories draws calls that begin at multiples of 1 us. A write takes a multiple of 1 us plus 1 ns, so
// that no call begins at the instant at which another call ends.
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

// play makes the calls to a Guard, and returns the outcome, and whether two functions ran at the same time.
func play(t *testing.T, calls []call) (o outcome, overlap bool) {
	o.Returned = make([]string, len(calls))
	synctest.Test(t, func(t *testing.T) {
		var g fencing.Guard
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

// model is a simple guard to compare with. It plays the calls one after the other, with a list of the
// waiting calls and the newest token so far.
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

// Random histories have the same outcome as in the model, and no two functions run at once. SPEC G1, G4.
func TestGuardHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		calls := histories().Draw(rt, "history")
		o, overlap := play(t, calls)
		if want := model(calls); overlap || !reflect.DeepEqual(o, want) {
			rt.Fatalf("overlap %v\ngot  %+v\nwant %+v", overlap, o, want)
		}
	})
}
