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
	members    []scriptMember
	strays     []string
	shards     map[string]*scriptShard
	grants     int
	shown      string            // the part of the View that was shown last
	errs       map[string]string // of the View
	out        []string
}

type scriptMember struct {
	Member
	offers int
	knows  []string // nil means the names of p
}

type scriptShard struct {
	holder         string // empty if it is free; somebody or garbled if its lease is not of the group
	order          uint64
	token          uint64
	state          lease.State
	hangs, refused bool      // the work of p does not return when it should; the store grants and breaks nothing
	ended          bool      // the lease of p has ended, and the work has not
	called         time.Time // when the work of p was called last
}

func (s *script) note(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf("%v ", s.now.Sub(s.began))+fmt.Sprintf(format, args...))
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
		*s = script{m: newMachine(o, "t/", "p"), now: time.Unix(0, 0), began: time.Unix(0, 0), shards: map[string]*scriptShard{}, errs: map[string]string{}}
		return nil, nil
	case s.m == nil:
		return nil, errors.New("the first command must be process")
	case who == "names":
		s.names(words[1:])
	case who == "poll":
		s.poll(d)
	case who == "lists":
		s.took, s.broken = max(d, 0), nil
		if verb == "fail" {
			s.broken = errors.New("no answer")
		}
	case verb == "joins", verb == "leaves":
		s.members = slices.DeleteFunc(s.members, func(m scriptMember) bool { return m.ID == who })
		if verb == "joins" {
			m := scriptMember{Member{ID: who, Weight: max(1, values["weight"]), Max: values["max"]}, unlimited, nil}
			if n, ok := values["offers"]; ok {
				m.offers = n
			}
			s.members = append(s.members, m)
		}
	case verb == "knows", verb == "is-drained", verb == "is-drained-no-more":
		i := slices.IndexFunc(s.members, func(m scriptMember) bool { return m.ID == who })
		if i < 0 {
			s.members, i = append(s.members, scriptMember{Member{ID: who}, unlimited, nil}), len(s.members)
		}
		if s.members[i].Drained = verb == "is-drained"; verb == "knows" {
			s.members[i].knows = rest
		}
	case who == "drain-leases":
		s.strays = strings.Fields(command)[1:]
	case verb == "has":
		for _, name := range rest {
			s.grants++
			x := s.shard(name)
			x.holder, x.order, x.token, x.state = who, uint64(s.grants), uint64(s.grants), lease.Leased
			if rest[len(rest)-1] == "(in-place)" {
				x.order = 0
			}
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

// names lets the function names return names, or an error.
func (s *script) names(names []string) {
	var err error
	if names[0] == "fail" {
		names, err = nil, errors.New("no names")
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if i := slices.Index(names, "(invalid)"); i >= 0 {
		names[i] = "\x00"
	}
	s.reports(s.m.named(names, err, s.now))
}

// happens lets something happen to a shard.
func (s *script) happens(x *scriptShard, name, verb string) error {
	reasons := map[string]error{"is-lost": lease.ErrStopWindow, "makes-no-progress": lease.ErrNoProgress}
	switch verb {
	case "is-free":
		x.holder = ""
	case "is-garbled":
		x.holder, x.state = "garbled", 0
	case "hangs":
		x.hangs = true
	case "is-refused", "is-granted":
		x.refused = verb == "is-refused"
	case "stops": // the work that hung
		x.hangs = false
		s.drop(name)
	case "is-lost", "makes-no-progress":
		s.m.workLost(name, reasons[verb], s.now)
		x.holder = ""
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
	if x.ended = false; x.holder == "p" {
		x.holder = ""
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
	if _, q, _, _ := parseMember(owner); q == unlimited && offers != q {
		s.note("offers to have its share")
	} else if offers != q {
		s.note("offers to have at most %d", q)
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
		s.grants++
		x.holder, x.order, x.token, x.state, x.called = "p", t.order, uint64(s.grants), lease.Leased, s.now
		s.m.workBegan(t.name, s.now)
	}
	for _, place := range slices.Sorted(maps.Keys(took)) {
		s.note("takes %s%s", strings.Join(took[place], " "), place)
	}
	for _, b := range do.breaks {
		s.note("breaks the lease of %s, which %s should have given", b.name, b.from)
		if x := s.shard(b.name); !x.refused {
			x.state = lease.Breaking
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
	l := listing{offers: map[string]int{}, knows: map[string]digest{}, shards: map[string]listed{}, bad: map[string]error{}, strays: s.strays}
	for _, m := range append(s.members, scriptMember{Member{ID: "p", Weight: s.m.o.Weight, Max: s.m.o.Max}, unlimited, nil}) {
		if i := slices.IndexFunc(l.members, func(o Member) bool { return o.ID == m.ID }); i >= 0 {
			continue // p, because it is drained
		}
		if l.members = append(l.members, m.Member); m.offers != unlimited {
			l.offers[m.ID] = m.offers
		}
		if l.knows[m.ID] = s.m.digest; m.knows != nil {
			l.knows[m.ID] = digestOf(m.knows)
		}
	}
	for name, x := range s.shards {
		e := listed{Shard: Shard{Name: name, ID: x.holder, Token: lease.Record{Epoch: x.token}.Token(), State: x.state}, order: x.order}
		switch x.holder {
		case "":
			continue
		case "garbled":
			l.bad[name] = errors.New("garbled")
			fallthrough
		case "somebody":
			e.ID, e.foreign = "", true
		}
		l.shards[name] = e
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
