package slots

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/interaction"
	"github.com/fencedlease/lease/session"
)

// TestInteractions runs testdata/*.txt. testdata/README.md explains them.
func TestInteractions(t *testing.T) {
	interaction.Run(t, func() func(string) ([]string, error) { return new(script).run })
}

// A script is the world of one interaction file: the machine of the call c, and what a list would show.
type script struct {
	m          machine
	now, began time.Time
	n          int
	list       listing
	shown      string // the step that was shown last
	out        []string
}

func (s *script) note(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf("%v ", s.now.Sub(s.began))+fmt.Sprintf(format, args...))
}

func (s *script) run(command string) ([]string, error) {
	words := strings.Fields(command)
	s.out = nil
	values := map[string]int{}
	for _, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, err
			}
			values[key] = n
		}
	}
	slot := func(word string) (i int) { i, _ = strconv.Atoi(strings.TrimPrefix(word, "slot-")); return i }
	w := waiter{id: words[0], process: words[0], priority: values["priority"], ticket: uint64(values["ticket"]), n: values["n"], number: len(s.list.waiters)}
	s.list.waiters = slices.DeleteFunc(s.list.waiters, func(o waiter) bool {
		return len(words) > 1 && (words[1] == "leaves" || words[1] == "waits") && o.id == w.id
	})
	switch {
	case words[0] == "call", words[0] == "try":
		o, err := (&Options{Session: &session.Options{Owner: "c"}, Priority: values["priority"]}).complete()
		if err != nil {
			return nil, err
		}
		*s = script{now: time.Unix(0, 0), began: time.Unix(0, 0), n: values["n"], list: listing{locked: map[int]holder{}, known: map[string]int{}, announced: map[string]int{}}}
		s.m = machine{o: o, once: words[0] == "try", began: s.now, me: waiter{id: "c", process: "c"}, freeSince: map[int]time.Time{}}
	case words[0] == "poll":
		d := time.Duration(0)
		if len(words) > 1 {
			var err error
			if d, err = time.ParseDuration(words[1]); err != nil {
				return nil, err
			}
		}
		for end := s.now.Add(d); ; s.now = s.now.Add(s.m.o.Interval) {
			if s.poll(); !s.now.Before(end) {
				break
			}
		}
		s.now = s.now.Add(s.m.o.Interval)
	case words[0] == "set-n":
		s.n, _ = strconv.Atoi(words[1])
		largest := s.list.largest("c", s.n)
		over := excess(s.list.locked, largest)
		slices.Sort(over)
		s.note("the largest number is %d, so SetN breaks the slots %v", largest, over)
	case words[1] == "waits":
		s.list.waiters = append(s.list.waiters, w)
		s.list.known[w.id] = max(s.list.known[w.id], w.n)
	case words[1] == "announces":
		s.list.announced[w.id] = w.n
	case words[1] == "leaves":
	case words[1] == "has":
		s.list.locked[slot(words[2])] = holder{waiter: w, foreign: w.id == "somebody"}
		s.list.known[w.id] = max(s.list.known[w.id], w.n)
	case words[1] == "is-free":
		delete(s.list.locked, slot(words[0]))
	case words[1] == "is-breaking":
		h := s.list.locked[slot(words[0])]
		h.breaking = true
		s.list.locked[slot(words[0])] = h
	default:
		return nil, errors.New("no such command")
	}
	return s.out, nil
}

func (s *script) poll() {
	st := s.m.poll(s.list, s.n, s.now)
	watch := strings.Join(st.toWatch("", s.n), " ")
	text := fmt.Sprintf("waits with priority %d and ticket %d behind %d others, and watches %s", s.m.me.priority, s.m.me.ticket, st.rank, watch)
	switch {
	case st.full && s.m.once:
		text = "finds no free slot"
	case st.take >= 0:
		text = fmt.Sprintf("takes slot %d", st.take)
	case st.breaks >= 0:
		text = fmt.Sprintf("breaks slot %d: %s", st.breaks, st.why)
	}
	if text != s.shown {
		s.shown = text
		s.note("%s", text)
	}
	s.m.queued = true
}
