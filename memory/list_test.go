package memory_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
)

func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		a := lease.NewAuthority(s)
		if list := s.List(); len(list) != 0 {
			t.Errorf("empty Store: %+v", list)
		}
		for _, c := range []struct {
			name string
			d    time.Duration
			more []lease.Request
		}{
			{"leased", time.Minute, nil},
			{"infinite", lease.Infinite, nil},
			{"expired", time.Second, nil},
			{"breaking", time.Minute, []lease.Request{{Action: lease.ActionBreak, Period: lease.Grace(10 * time.Second)}}},
			{"broken", time.Minute, []lease.Request{{Action: lease.ActionBreak, Period: lease.Grace(time.Second)}}},
			{"available", time.Minute, []lease.Request{{Action: lease.ActionRelease, ID: holder}, acquire, {Action: lease.ActionRelease, ID: holder}}},
			{"written", time.Second, []lease.Request{{Action: lease.ActionRelease, ID: holder}, {Action: lease.ActionWrite}}},
		} {
			do(t, a, c.name, lease.Request{Action: lease.ActionAcquire, Proposed: holder, Owner: "of " + c.name, Duration: c.d})
			for _, req := range c.more {
				do(t, a, c.name, req)
			}
		}
		load(t, s, "asked for, and never leased")
		time.Sleep(time.Second)
		one, two := lease.TokenOf(1), lease.TokenOf(2)
		want := []memory.Info{
			{"available", lease.Available, "worker-1", 0, two},
			{"breaking", lease.Breaking, "of breaking", 9 * time.Second, one},
			{"broken", lease.Broken, "of broken", 0, one},
			{"expired", lease.Expired, "of expired", 0, one},
			{"infinite", lease.Leased, "of infinite", lease.Infinite, one},
			{"leased", lease.Leased, "of leased", 59 * time.Second, one},
			{"written", lease.Available, "", 0, one},
		}
		if list := s.List(); !slices.Equal(list, want) {
			t.Errorf("got  %+v\nwant %+v", list, want)
		}
	})
}
