package pglease

import (
	"fmt"
	"testing"
	"time"
)

// If there are more names than one sweep takes, no name is swept a second time before every name
// was swept once.
func TestSweepsTakeTurns(t *testing.T) {
	l := &listener{watched: map[string]*watched{}, time: serverTime{7, time.Now()}}
	const names = 2*sweepMost + 500
	for i := range names {
		if !l.add(fmt.Sprint("x", i), make(chan struct{}, 1)) {
			t.Fatal("the listener is lost")
		}
	}
	for round := range 2 {
		swept := map[string]int64{}
		for _, want := range []int{sweepMost, sweepMost, 500} {
			next := l.nextNames()
			if len(next) != want {
				t.Errorf("round %d: %d names, want %d", round, len(next), want)
			}
			for _, n := range next {
				swept[n.Name] = n.After
			}
		}
		if len(swept) != names {
			t.Errorf("round %d: %d names are looked at, of %d", round, len(swept), names)
		}
		if after := swept["x1"]; after < 7 {
			t.Errorf("changes are looked for from %d on, before the watch began", after)
		}
	}
}

func TestPayload(t *testing.T) {
	for payload, want := range map[string]sweptName{
		"17 a": {"a", 17}, "0 a b": {"a b", 0}, "17  a": {" a", 17}, "x": {"", 0}, "x y": {"y", 0},
	} {
		if micros, name := parsePayload(payload); name != want.Name || micros != want.After {
			t.Errorf("%q: %q, %d", payload, name, micros)
		}
	}
}
