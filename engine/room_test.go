package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A timedRoom is a room with its own time.
type timedRoom struct {
	room
	now time.Time
}

// answer lets the given numbers of renewals and reads be answered at the end of each of n intervals.
func (r *timedRoom) answer(n int, each time.Duration, renewals, reads int, most bool) {
	for range n {
		r.now = r.now.Add(each)
		for range renewals {
			r.answered(r.now, 1, 0, most)
		}
		for range reads {
			r.answered(r.now, 0, 1, most)
		}
	}
}

// hold notes n leases of 30 s, which need n/10 renewals a second.
func (r *timedRoom) hold(n int) {
	for i := range n {
		r.note(r.now, fmt.Sprint(i), lease.Record{State: lease.Leased, Duration: 30 * time.Second})
	}
}

// wants expects that another lease is admitted or refused.
func (r *timedRoom) wants(t *testing.T, when, name string, d time.Duration, admitted bool) {
	t.Helper()
	if err := r.admit(r.now, name, d); (err == nil) != admitted {
		t.Errorf("%s: %v", when, err)
	}
}

// What a server does says how much it can do only while requests wait, most of them are renewals, and none could
// have renewed more leases. What it did around a pause says nothing. The bound counts for one store: leases that are
// held, released or not renewed any more make room.
func TestRoomMeasuresAtTheLimit(t *testing.T) {
	const tenth, duration = 100 * time.Millisecond, 30 * time.Second
	for _, c := range []struct {
		what  string
		reads int // answered in each interval beside 10 renewals
		most  bool
		each  time.Duration
		full  bool
	}{
		{"renewals at the limit", 1, true, tenth, true},
		{"the server could do more", 1, false, tenth, false},
		{"many reads", 5, true, tenth, false},
		{"pauses", 1, true, 1500 * time.Millisecond, false},
	} {
		r := timedRoom{now: time.Unix(1000, 0)}
		r.hold(900)
		r.answer(12, c.each, 10, c.reads, c.most)
		r.wants(t, c.what, "another", duration, !c.full)
		if c.full {
			r.wants(t, "a lease that is held", "7", duration, true)
			for i := range 100 {
				r.note(r.now, fmt.Sprint(i), lease.Record{})
			}
			r.wants(t, "after leases were released", "another", duration, true)
			r.now = r.now.Add(duration + time.Second)
			r.wants(t, "after no lease was renewed", "another", time.Second/25, true)
		}
	}
}

// A figure that was measured while the machine was busy with something else is measured again before a lease is refused
// because of it: one measurement says nothing, and two say nothing any more once the server has renewed all leases
// without a queue.
func TestRoomMeasuresABusyMomentAgain(t *testing.T) {
	const duration, held = 30 * time.Second, 3000 // 300 renewals a second
	r := timedRoom{now: time.Unix(1000, 0)}
	renew := func(perTenth int, queued bool, windows int) {
		r.answer(5*windows, window/5, perTenth, 0, queued)
		r.hold(held)
	}
	for _, when := range []string{"after one measurement of a sixth", "after one more, later"} {
		renew(30, false, 2)
		renew(5, true, 2) // the first of them began before the queue
		r.wants(t, when, "another", duration, true)
	}
	renew(30, false, 2)
	renew(5, true, 3)
	r.wants(t, "while the server does a sixth", "another", duration, false)
	renew(30, false, int(duration/3/window)+1)
	r.wants(t, "after all were renewed without a queue", "another", duration, true)
}

// A room that was never at its limit forgets leases that have ended without a note.
func TestRoomForgetsLeases(t *testing.T) {
	r := timedRoom{now: time.Unix(1000, 0)}
	for i := range 1000 {
		name := fmt.Sprint("job/", i)
		r.wants(t, name, name, time.Second, true)
		r.note(r.now, name, lease.Record{State: lease.Leased, Duration: time.Second})
		r.now = r.now.Add(time.Second)
	}
	if n := len(r.held); n > 10 {
		t.Errorf("the room remembers %d leases, all but one of which have ended", n)
	}
}
