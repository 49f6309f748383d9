package shards

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/interaction"
	"github.com/fencedlease/lease/session"
)

// TestInteractions runs testdata/*.txt. testdata/README.md explains them.
func TestInteractions(t *testing.T) {
	interaction.Run(t, func() func(string) ([]string, error) { return new(script).run })
}

// A script is the world of one interaction file: the machine of the process p, and what a list would show.
type script struct {
	m          *machine
	now, began time.Time
	took       time.Duration // for each list
	broken     error         // of each list
	members    []worker
	strays     []string
	shards     map[string]*scriptShard
	grants     int
	shown      string            // the part of the View that was shown last
	errs       map[string]string // of the View
	out        []string
}

type scriptShard struct {
	listed                   // zero if it is free
	hangs, refused bool      // the work of p does not return when it should; the store grants and breaks nothing
	ended          bool      // the lease of p has ended, and the work has not
	called         time.Time // when the work of p was called last
}

func (s *script) note(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf("%v ", s.now.Sub(s.began))+fmt.Sprintf(format, args...))
}

// grant lets a process, or somebody, have the lease of a shard.
func (s *script) grant(who, name string, order uint64) *scriptShard {
	s.grants++
	x := s.shard(name)
	x.listed = listed{Shard{Name: name, ID: who, Token: lease.Record{Epoch: uint64(s.grants)}.Token(), State: lease.Leased}, order, who == "somebody"}
	if x.foreign {
		x.ID = ""
	}
	return x
}

// shard returns the shard with a name.
func (s *script) shard(name string) *scriptShard {
	if s.shards[name] == nil {
		s.shards[name] = new(scriptShard)
	}
	return s.shards[name]
}

func (s *script) run(command string) ([]string, error) {
	words := append(strings.Fields(command), "", "")
	s.out = nil
	values := map[string]int{} // of words like max=2
	times, d := 1, time.Duration(-1)
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		values[key], _ = strconv.Atoi(value)
		if n, err := strconv.Atoi(w); err == nil {
			times = n
		} else if after, err := time.ParseDuration(w); err == nil {
			d = after
		}
	}
	who, verb, rest := words[0], words[1], words[2:max(2, len(words)-2)]
	switch {
	case who == "process":
		o, err := (&Options{Session: &session.Options{Owner: "p"}, Max: values["max"], Weight: values["weight"]}).complete()
		if err != nil {
			return nil, err
		}
		*s = script{m: newMachine(o, "t/", "p"), now: time.Unix(0, 0), began: time.Unix(0, 0), shards: map[string]*scriptShard{}, errs: map[string]string{}, members: []worker{aMember("p", 1, 0)}}
		return nil, nil
	case s.m == nil:
		return nil, errors.New("the first command must be process")
	case who == "names":
		names, err := strings.Fields(strings.ReplaceAll(command, "(invalid)", "\x00"))[1:], error(nil)
		if verb == "fail" {
			names, err = nil, errors.New("no names")
		}
		s.reports(s.m.named(names, err, s.now))
	case who == "poll":
		s.poll(d)
	case who == "lists":
		s.took, s.broken = max(d, 0), nil
		if verb == "fail" {
			s.broken = errors.New("no answer")
		}
	case verb == "joins", verb == "leaves":
		s.members = slices.DeleteFunc(s.members, func(m worker) bool { return m.ID == who })
		if verb == "joins" {
			m := aMember(who, max(1, values["weight"]), values["max"])
			if n, ok := values["offers"]; ok {
				m.offers = n
			}
			s.members = append(s.members, m)
		}
	case verb == "knows", verb == "is-drained", verb == "is-drained-no-more":
		m := &s.members[slices.IndexFunc(s.members, func(m worker) bool { return m.ID == who })]
		if m.Drained = verb == "is-drained"; verb == "knows" {
			m.knows = digestOf(rest)
		}
	case who == "drain-leases":
		s.strays = strings.Fields(command)[1:]
	case verb == "has":
		for _, name := range rest {
			order := uint64(s.grants + 1)
			if rest[len(rest)-1] == "(in-place)" {
				order = 0
			}
			s.grant(who, name, order)
		}
		delete(s.shards, "(in-place)")
	case verb == "fails", verb == "succeeds":
		s.now = s.now.Add(max(d, 0))
		s.returns(who, times, map[string]error{"fails": errWork}[verb])
	default:
		return s.out, s.happens(s.shard(who), who, verb)
	}
	return s.out, nil
}

// happens lets something happen to a shard.
func (s *script) happens(x *scriptShard, name, verb string) error {
	reasons := map[string]error{"is-lost": lease.ErrStopWindow, "makes-no-progress": lease.ErrNoProgress}
	switch verb {
	case "is-free":
		x.listed = listed{}
	case "is-garbled":
		x.listed = listed{Shard: Shard{Name: name, Err: errors.New("garbled")}, foreign: true}
	case "hangs":
		x.hangs = true
	case "is-refused", "is-granted":
		x.refused = verb == "is-refused"
	case "stops": // the work that hung
		x.hangs = false
		s.drop(name)
	case "is-lost", "makes-no-progress":
		s.m.workLost(name, reasons[verb], s.now)
		x.listed = listed{}
		if x.ended = true; !x.hangs {
			s.drop(name)
		}
	default:
		return errors.New("no such command")
	}
	return nil
}

// returns lets the work of p on a shard return, each time when it was just called again.
func (s *script) returns(name string, times int, err error) {
	var pauses []string
	for range times {
		pause, again, reports := s.m.workReturned(name, s.shard(name).called, s.now, err)
		if times == 1 {
			s.reports(reports)
		}
		if !again {
			s.note("%s is called again after %s, and then given up", name, strings.Join(pauses, " "))
			s.drop(name)
			return
		}
		pauses = append(pauses, pause.String())
		s.now = s.now.Add(pause)
		s.shard(name).called = s.now
	}
	s.note("%s is called again after %s", name, strings.Join(pauses, " "))
}

// drop ends the work of p on a shard and its lease.
func (s *script) drop(name string) {
	x := s.shard(name)
	if x.ended = false; x.ID == "p" {
		x.listed = listed{}
	}
	s.m.dropped(name)
}

// poll polls once, or as often as p does in the time d.
func (s *script) poll(d time.Duration) {
	end := s.now.Add(d)
	for first := true; first || d > 0; first = false {
		if s.m.polls > 0 {
			next := s.now.Add(s.m.seen.view.Interval)
			if d > 0 && next.After(end) {
				return
			}
			s.now = next
		}
		s.once()
	}
}

func (s *script) once() {
	ended := map[string]bool{}
	for name, x := range s.shards {
		ended[name] = x.ended
	}
	known, offers := slices.Sorted(maps.Keys(s.m.shards)), s.m.quarantine.offers
	owner, reports := s.m.announce(s.now, ended)
	s.reports(reports)
	if p, _ := parseMember(owner); p.offers == unlimited && offers != unlimited {
		s.note("offers to have its share")
	} else if p.offers != offers {
		s.note("offers to have at most %d", p.offers)
	}
	snap, do := s.m.poll(poll{s.now.Add(-s.took), s.now, s.list(), s.broken, ended})
	s.reports(do.reports)
	for _, e := range do.end {
		s.note("ends the work of %s: %s", e.name, map[error]string{ErrMoving: "it moves", ErrRemoved: "it was removed"}[e.cause])
		if !s.shard(e.name).hangs {
			s.drop(e.name)
		}
	}
	took := map[string][]string{}
	for _, t := range do.take {
		place, x := "", s.shard(t.name)
		if t.order == 0 {
			place = " in place of another process"
		}
		if x.refused {
			s.note("tries to take %s%s", t.name, place)
			s.reports([]report{s.m.failed(t.name, errors.New("refused"), s.m.o.Interval, s.now)})
			s.m.dropped(t.name)
			continue
		}
		took[place] = append(took[place], t.name)
		s.grant("p", t.name, t.order).called = s.now
		s.m.workBegan(t.name, s.now)
	}
	for _, place := range slices.Sorted(maps.Keys(took)) {
		s.note("takes %s%s", strings.Join(took[place], " "), place)
	}
	for _, b := range do.breaks {
		s.note("breaks the lease of %s, which %s should have given", b.name, b.from)
		if x := s.shard(b.name); !x.refused {
			x.State = lease.Breaking
		}
	}
	for _, name := range known {
		if s.m.shards[name] == nil {
			s.note("forgets %s", name)
		}
	}
	s.view(snap)
}

// list returns what a list would show.
func (s *script) list() listing {
	l := listing{members: slices.Clone(s.members), shards: map[string]listed{}, strays: s.strays}
	for i, m := range l.members {
		if m.knows == (digest{}) {
			l.members[i].knows = s.m.digest
		}
	}
	for name, x := range s.shards {
		if x.State.Locked() || x.Err != nil {
			l.shards[name] = x.listed
		}
	}
	return l
}

// reports writes down what the log says.
func (s *script) reports(reports []report) {
	var log strings.Builder
	o := *s.m.o
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "time" || a.Key == "prefix" {
			return slog.Attr{}
		}
		return a
	}}))
	(&Group{o: &o}).send(reports...)
	for line := range strings.Lines(log.String()) {
		s.note("logs %s", strings.TrimPrefix(strings.TrimSpace(line), "level="))
	}
}

// view writes down what has changed in the View.
func (s *script) view(snap snapshot) {
	v := snap.View()
	text := fmt.Sprintf("the View has %d moves", v.Moves)
	if v.Idle > 0 {
		text += fmt.Sprintf(", %d idle", v.Idle)
	}
	if v.Interval != s.m.o.Interval {
		text += fmt.Sprintf(", an Interval of %v", v.Interval)
	}
	if v.Err != nil {
		text += ", the error " + strings.ReplaceAll(v.Err.Error(), "\n", ", ")
	}
	if text != s.shown {
		s.shown = text
		s.note("%s", text)
	}
	for _, x := range v.Shards {
		now := ""
		if x.Err != nil {
			now = x.Err.Error()
		}
		if now != s.errs[x.Name] {
			s.errs[x.Name] = now
			s.note("the View has for %s: %s", x.Name, cmp.Or(now, "no error"))
		}
	}
}
