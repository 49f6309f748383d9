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
	m       *machine
	now     time.Time
	began   time.Time
	took    time.Duration // for each list
	members []Member
	offers  map[string]int
	knows   map[string][]string // what a member knows, if not the names of p
	leases  map[string]*scriptLease
	drained map[string]bool
	broken  error // of each list
	grants  int
	hang    map[string]bool // the work does not return when it should
	refuse  map[string]bool // the store refuses to grant it
	ended   map[string]bool
	called  map[string]time.Time // when the work of p was called last
	shown   string               // the part of the View that was shown last
	errs    map[string]string    // of the View
	out     []string
}

type scriptLease struct {
	holder string // a word that is no member stands for a stranger
	order  uint64
	token  int
	state  lease.State
}

var causes = map[error]string{ErrMoving: "it moves", ErrRemoved: "it was removed"}

var scriptErrs = map[string]error{"is-lost": lease.ErrStopWindow, "is-broken": lease.ErrBroken, "makes-no-progress": lease.ErrNoProgress}

func (s *script) note(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf("%v ", s.now.Sub(s.began))+fmt.Sprintf(format, args...))
}

func (s *script) run(command string) ([]string, error) {
	words := strings.Fields(command)
	s.out = nil
	if s.m == nil || words[0] == "process" {
		return nil, s.start(words)
	}
	if len(words) == 1 {
		words = append(words, "")
	}
	var err error
	switch who, verb, rest := words[0], words[1], words[2:]; {
	case who == "names":
		s.names(words[1:])
	case who == "poll":
		err = s.poll(words[1:])
	case who == "lists" && verb == "fail":
		s.broken = errors.New("no answer")
	case who == "lists" && verb == "succeed":
		s.broken = nil
	case who == "lists" && verb == "take":
		s.took, err = time.ParseDuration(rest[0])
	case verb == "joins":
		err = s.join(who, rest)
	case verb == "leaves":
		s.members = slices.DeleteFunc(s.members, func(m Member) bool { return m.ID == who })
	case verb == "knows":
		s.knows[who] = rest
	case verb == "is-drained":
		s.drained[who] = true
	case verb == "is-drained-no-more":
		delete(s.drained, who)
	case verb == "has":
		s.has(who, rest)
	default:
		err = s.shard(who, verb, rest)
	}
	return s.out, err
}

// start makes the process p: "process max=2 weight=1 grace=30s".
func (s *script) start(words []string) error {
	*s = script{now: time.Unix(0, 0), began: time.Unix(0, 0), offers: map[string]int{}, knows: map[string][]string{}, leases: map[string]*scriptLease{},
		drained: map[string]bool{}, hang: map[string]bool{}, refuse: map[string]bool{}, ended: map[string]bool{}, called: map[string]time.Time{}, errs: map[string]string{}}
	if words[0] != "process" {
		return errors.New("the first command must be process")
	}
	o := Options{Session: &session.Options{Owner: "p"}}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "max":
			o.Max = n
		case "weight":
			o.Weight = n
		case "grace":
			o.Grace, _ = time.ParseDuration(value)
		default:
			return fmt.Errorf("no option %q", key)
		}
	}
	c, err := o.complete()
	if err == nil {
		s.m = newMachine(c, "t/", "p")
	}
	return err
}

// join makes a member: "q joins weight=2 max=3 offers=0".
func (s *script) join(who string, words []string) error {
	m := Member{ID: who, Weight: 1}
	delete(s.offers, who)
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		switch key {
		case "max":
			m.Max = n
		case "weight":
			m.Weight = n
		case "offers":
			s.offers[who] = n
		default:
			err = fmt.Errorf("no option %q", key)
		}
		if err != nil {
			return err
		}
	}
	s.members = slices.DeleteFunc(s.members, func(o Member) bool { return o.ID == who })
	s.members = append(s.members, m)
	return nil
}

// has gives leases to a process: "q has a b", or "q has a (in-place)", which it took in place of another process.
func (s *script) has(who string, names []string) {
	inPlace := slices.Contains(names, "(in-place)")
	for _, name := range names {
		if name == "(in-place)" {
			continue
		}
		s.grants++
		l := &scriptLease{who, uint64(s.grants), s.grants, lease.Leased}
		if inPlace {
			l.order = 0
		}
		s.leases[name] = l
	}
}

// names lets the function names return names, or an error.
func (s *script) names(names []string) {
	var err error
	if names[0] == "fail" {
		names, err = nil, errors.New("no names")
	}
	if i := slices.Index(names, "(invalid)"); i >= 0 {
		names[i] = "\x00"
	}
	s.reports(s.m.named(names, err, s.now))
}

// shard lets something happen to a shard, or to the work of p on it.
func (s *script) shard(name, verb string, rest []string) error {
	switch verb {
	case "is-free":
		delete(s.leases, name)
	case "is-garbled":
		s.leases[name] = &scriptLease{holder: "garbled"}
	case "is-breaking":
		s.leases[name].state = lease.Breaking
	case "hangs":
		s.hang[name] = true
	case "is-refused", "is-granted":
		s.refuse[name] = verb == "is-refused"
	case "stops": // the work that hung
		delete(s.hang, name)
		s.drop(name)
	case "fails", "succeeds":
		var err error
		if verb == "fails" {
			err = errWork
		}
		times := 1
		for _, w := range rest { // a fails 5 times, a fails after 10s
			if n, err := strconv.Atoi(w); err == nil {
				times = n
			} else if d, err := time.ParseDuration(w); err == nil {
				s.now = s.now.Add(d)
			}
		}
		return s.returns(name, times, err)
	case "is-lost", "is-broken", "makes-no-progress":
		s.m.workLost(name, scriptErrs[verb], s.now)
		delete(s.leases, name)
		if s.ended[name] = true; !s.hang[name] {
			s.drop(name)
		}
	default:
		return errors.New("no such command")
	}
	return nil
}

// returns lets the work of p on a shard return, each time when it was just called again.
func (s *script) returns(name string, times int, err error) error {
	var pauses []string
	for range times {
		pause, again, reports := s.m.workReturned(name, s.called[name], s.now, err)
		if len(reports) > 0 && times == 1 {
			s.reports(reports)
		}
		if !again {
			s.note("%s is called again after %s, and then given up", name, strings.Join(pauses, " "))
			s.drop(name)
			return nil
		}
		pauses = append(pauses, pause.String())
		s.now = s.now.Add(pause)
		s.called[name] = s.now
	}
	s.note("%s is called again after %s", name, strings.Join(pauses, " "))
	return nil
}

// drop ends the work of p on a shard and its lease.
func (s *script) drop(name string) {
	if l := s.leases[name]; l != nil && l.holder == "p" {
		delete(s.leases, name)
	}
	delete(s.ended, name)
	s.m.dropped(name)
}

// poll polls once, or for as long as the word says. Each poll comes one Interval after the one before.
func (s *script) poll(words []string) error {
	end := s.now
	if words[0] != "" {
		d, err := time.ParseDuration(words[0])
		if err != nil {
			return err
		}
		end = s.now.Add(d)
	}
	for {
		if s.m.polls > 0 {
			next := s.m.seen.view.Interval
			if words[0] != "" && s.now.Add(next).After(end) {
				return nil
			}
			s.now = s.now.Add(next)
		}
		s.once()
		if words[0] == "" {
			return nil
		}
	}
}

func (s *script) once() {
	offers := s.m.quarantine.offers
	_, reports := s.m.announce(s.now, s.ended)
	s.reports(reports)
	if q := s.m.quarantine.offers; q == unlimited && offers != q {
		s.note("offers to have its share")
	} else if offers != q {
		s.note("offers to have at most %d", q)
	}
	snap, do := s.m.poll(poll{s.now.Add(-s.took), s.now, s.list(), s.broken, s.ended})
	s.reports(do.reports)
	for _, e := range do.end {
		s.note("ends the work of %s: %s", e.name, causes[e.cause])
		if !s.hang[e.name] {
			s.drop(e.name)
		}
	}
	took := map[string][]string{}
	for _, t := range do.take {
		place := ""
		if t.order == 0 {
			place = " in place of another process"
		}
		if s.refuse[t.name] {
			s.note("tries to take %s%s", t.name, place)
			s.reports([]report{s.m.failed(t.name, errors.New("refused"), s.m.o.Interval, s.now)})
			s.m.dropped(t.name)
			continue
		}
		took[place] = append(took[place], t.name)
		s.has("p", []string{t.name})
		s.leases[t.name].order = t.order
		s.m.workBegan(t.name, s.now)
		s.called[t.name] = s.now
	}
	for _, place := range slices.Sorted(maps.Keys(took)) {
		s.note("takes %s%s", strings.Join(took[place], " "), place)
	}
	for _, b := range do.breaks {
		s.note("breaks the lease of %s, which %s should have given", b.name, b.from)
		s.leases[b.name].state = lease.Breaking
	}
	s.view(snap)
}

// list returns what a list would show.
func (s *script) list() listing {
	l := listing{offers: maps.Clone(s.offers), knows: map[string]digest{}, shards: map[string]listed{}, bad: map[string]error{}}
	l.members = append([]Member{{ID: "p", Weight: s.m.o.Weight, Max: s.m.o.Max}}, s.members...)
	for i := range l.members {
		m := &l.members[i]
		m.Drained = s.drained[m.ID]
		if l.knows[m.ID] = s.m.digest; s.knows[m.ID] != nil {
			l.knows[m.ID] = digestOf(s.knows[m.ID])
		}
	}
	for name, x := range s.leases {
		e := listed{Shard: Shard{Name: name, ID: x.holder, Token: lease.Record{Epoch: uint64(x.token)}.Token(), State: x.state}, order: x.order}
		switch x.holder {
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
