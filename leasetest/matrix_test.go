package leasetest

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

var update = flag.Bool("update", false, "write MATRIX.md")

// events are the columns of a cell, by the letter that stands for each.
var events = []struct{ letter, what string }{
	{"o", "an operation"}, {"t", "time passes"}, {"f", "the store forgets"}, {"r", "it is opened again"},
	{"2", "a second client or holder acts"}, {"c", "the context is cancelled"}, {"x", "the authority does not answer"},
}

// A coverage is which events a rule tries in which states. The suite's own rules say so by what they do to
// an implementation that notes it.
type coverage struct {
	mu    sync.Mutex
	cells map[string]string // letters, by state
	names []func() []string // the states that there are now
}

func (c *coverage) note(letter, state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !strings.Contains(c.cells[state], letter) {
		c.cells[state] += letter
	}
}

// noteAll notes an event for all states that there are now.
func (c *coverage) noteAll(letter string) {
	c.mu.Lock()
	names := slices.Clone(c.names)
	c.mu.Unlock()
	for _, states := range names {
		for _, state := range states() {
			c.note(letter, state)
		}
	}
}

func (c *coverage) sleep(d time.Duration) {
	c.noteAll("t")
	time.Sleep(d)
}

// A coveredStore notes what is done to a plainStore.
type coveredStore struct {
	*plainStore
	c      *coverage
	client string // "2" for a second client
}

func (s *coveredStore) state(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return stateName(s.records[name].At(s.time()))
}

// states are those of all records. Names that were never used are available.
func (s *coveredStore) states() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		all = append(all, stateName(r.At(s.time())))
	}
	return all
}

func (s *coveredStore) noted(ctx context.Context, name string) {
	state := s.state(name)
	s.c.note("o", state)
	if s.client != "" {
		s.c.note(s.client, state)
	}
	if ctx.Err() != nil {
		s.c.note("c", state)
	}
}

func (s *coveredStore) Load(ctx context.Context, name string) (lease.Snapshot, error) {
	s.noted(ctx, name)
	return s.plainStore.Load(ctx, name)
}

func (s *coveredStore) Swap(ctx context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.noted(ctx, name)
	return s.plainStore.Swap(ctx, name, old, next)
}

func (s *coveredStore) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	s.noted(ctx, name)
	return s.plainStore.Watch(ctx, name)
}

func (s *coveredStore) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) {
		for e, err := range s.plainStore.List(ctx, prefix) {
			s.noted(ctx, e.Name)
			if !yield(e, err) {
				return
			}
		}
	}
}

func coveredStores(c *coverage) *suite {
	s := plainStores("")
	cover := func(of *plainStore, client string) lease.Store {
		store := &coveredStore{of, c, client}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.names = append(c.names, store.states)
		return store
	}
	s.newStore = func(testing.TB) lease.Store { return cover(newPlainStore(""), "") }
	s.options.Sleep = c.sleep
	s.options.Store.Reopen = func(t testing.TB, of lease.Store) lease.Store {
		c.noteAll("r")
		return cover(of.(*coveredStore).reopen(t, of).(*plainStore), "")
	}
	s.options.Store.Forget = func(t testing.TB, of lease.Store) time.Duration {
		c.noteAll("f")
		return of.(*coveredStore).forget(t, of)
	}
	s.options.Store.Another = func(t testing.TB, of lease.Store) lease.Store {
		if _, ok := of.(*remoteStore); ok {
			return another(t, of)
		}
		return cover(of.(*coveredStore).plainStore, "2")
	}
	s.options.Store.Corrupt = func(_ testing.TB, of lease.Store, name string) { of.(*coveredStore).spoilt[name] = true }
	return s
}

// A coveredAuthority notes what is done to a plainAuthority.
type coveredAuthority struct {
	*plainAuthority
	c      *coverage
	client string
}

func (a *coveredAuthority) states() (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.records {
		all = append(all, stateName(r.At(time.Now())))
	}
	return all
}

func (a *coveredAuthority) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	a.mu.Lock()
	state := stateName(a.records[name].At(time.Now()))
	a.mu.Unlock()
	a.c.note("o", state)
	if a.client != "" {
		a.c.note(a.client, state)
	}
	if ctx.Err() != nil {
		a.c.note("c", state)
	}
	return a.plainAuthority.Do(ctx, name, req)
}

func coveredAuthorities(c *coverage) *suite {
	s := plainAuthorities("")
	cover := func(of *plainAuthority, client string) lease.Authority {
		a := &coveredAuthority{of, c, client}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.names = append(c.names, a.states)
		return a
	}
	inner := s.newAuthority
	s.newAuthority = func(t testing.TB) lease.Authority { return cover(inner(t).(*plainAuthority), "") }
	s.options.Sleep = c.sleep
	s.options.Authority.Reopen = func(_ testing.TB, a lease.Authority) lease.Authority {
		c.noteAll("r")
		return cover(a.(*coveredAuthority).sameRecords(), "")
	}
	s.options.Authority.Another = func(t testing.TB, a lease.Authority) lease.Authority {
		if _, ok := a.(*remoteAuthority); ok {
			return anotherAuthority(t, a)
		}
		return cover(a.(*coveredAuthority).sameRecords(), "2")
	}
	return s
}

func (a *coveredAuthority) sameRecords() *plainAuthority { return a.plainAuthority.client() }

// A coveredHolder notes what is done to a session.Session, and in which state.
type coveredHolder struct {
	*wrappedHolder
	c    *coverage
	name string
}

func (h *coveredHolder) now() string {
	h.wrappedHolder.mu.Lock()
	defer h.wrappedHolder.mu.Unlock()
	return h.wrappedHolder.state
}

// noted notes a call of a method. The caller calls the returned function with the error of the method.
func (h *coveredHolder) noted(ctx context.Context) func(error) {
	state, done := h.now(), ctx.Err() != nil
	h.c.note("o", state)
	return func(err error) {
		// A context that ends at the time of a loss may end before or after it.
		if done || err != nil && ctx.Err() != nil && state != "lost" {
			h.c.note("c", state)
		}
	}
}

func (h *coveredHolder) Acquire(ctx context.Context) (ok bool, err error) {
	returned := h.noted(ctx)
	defer func() { returned(err) }()
	return h.wrappedHolder.Acquire(ctx)
}

func (h *coveredHolder) AcquireWithToken(ctx context.Context) (tok lease.Token, ok bool, err error) {
	returned := h.noted(ctx)
	defer func() { returned(err) }()
	return h.wrappedHolder.AcquireWithToken(ctx)
}

func (h *coveredHolder) Release(ctx context.Context) (err error) {
	returned := h.noted(ctx)
	defer func() { returned(err) }()
	return h.wrappedHolder.Release(ctx)
}

func (h *coveredHolder) Close(ctx context.Context) (err error) {
	returned := h.noted(ctx)
	defer func() { returned(err) }()
	return h.wrappedHolder.Close(ctx)
}

func (h *coveredHolder) Wait(ctx context.Context) (err error) {
	returned := h.noted(ctx)
	defer func() { returned(err) }()
	return h.wrappedHolder.Wait(ctx)
}

func (h *coveredHolder) HandOver(ctx context.Context, to lease.ID) (err error) {
	returned := h.noted(ctx)
	defer func() { returned(err) }()
	return h.wrappedHolder.HandOver(ctx, to)
}

func (h *coveredHolder) CheckAlive() bool {
	h.c.note("o", h.now())
	return h.wrappedHolder.CheckAlive()
}

// A coveredNetwork notes requests that are not answered, and those of other holders.
type coveredNetwork struct {
	lease.Authority
	h   *coveredHolder
	all *sync.Map // of the holders of the rule
}

func (n *coveredNetwork) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	n.all.Range(func(other, _ any) bool {
		if o := other.(*coveredHolder); o != n.h && o.name == name && req.Action != lease.ActionRead {
			o.c.note("2", o.now())
		}
		return true
	})
	sent := n.h.now()
	res, err := n.Authority.Do(ctx, name, req)
	if err != nil && lease.CodeOf(err) == 0 && slices.Contains([]string{"idle", "held", "breaking"}, sent) {
		n.h.c.note("x", sent) // a request after the end of an incarnation has no certain time
	}
	return res, err
}

func coveredHolders(c *coverage) *suite {
	o := &Options{Bubble: true, Seed: 1, Sleep: c.sleep}
	all := new(sync.Map)
	return &suite{rules: leaseRules, options: o.withDefaults(), newLease: func(t testing.TB, h Holder) lease.Lease {
		covered := &coveredHolder{c: c, name: h.Name}
		network := &coveredNetwork{h.Authority, covered, all}
		if w, ok := h.Authority.(lease.Watcher); ok {
			h.Authority = struct {
				lease.Authority
				lease.Watcher
			}{network, w}
		} else {
			h.Authority = network
		}
		covered.wrappedHolder = newWrappedHolder(t, h, holderBug{}).(*wrappedHolder)
		all.Store(covered, true)
		t.Cleanup(func() { all.Delete(covered) })
		c.mu.Lock()
		defer c.mu.Unlock()
		c.names = append(c.names, func() []string { return []string{covered.now()} })
		return covered
	}}
}

// A matrixPart is the matrix of one suite.
type matrixPart struct {
	title  string
	states []string
	events string // letters that make sense
	suite  func(*coverage) *suite
}

var matrixParts = []matrixPart{
	{"Stores", matrixStates, "otfr2c", coveredStores},
	{"Authorities", matrixStates, "otr2c", coveredAuthorities},
	{"Holders", []string{"idle", "held", "breaking", "lost", "released", "closed"}, "ot2cx", coveredHolders},
}

// measure runs the rules of a part, and returns the letters by clause and state.
func (p matrixPart) measure(t *testing.T) map[string]map[string]string {
	var mu sync.Mutex
	all := map[string]map[string]string{}
	t.Run(p.title, func(t *testing.T) {
		for _, r := range p.suite(&coverage{cells: map[string]string{}}).rules {
			if panickingRules[r.name] {
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				c := &coverage{cells: map[string]string{}}
				s := p.suite(c)
				if r.needs&^(s.options.Can|methods) != 0 {
					return
				}
				if found := s.violated(t, r); len(found) > 0 {
					t.Fatal(found[0])
				}
				mu.Lock()
				defer mu.Unlock()
				if all[r.clause()] == nil {
					all[r.clause()] = map[string]string{}
				}
				for state, letters := range c.cells {
					all[r.clause()][state] += letters
				}
			})
		}
	})
	return all
}

// A reason says why cells are empty. Clauses and states are patterns; the first reason that fits counts.
type reason struct{ part, clauses, states, events, why string }

// text writes the part, and the reasons of its empty cells.
func (p matrixPart) text(t *testing.T, b *strings.Builder) {
	cells := p.measure(t)
	fmt.Fprintf(b, "## %s\n\n| Clause | %s |\n|---|%s\n", p.title, strings.Join(p.states, " | "), strings.Repeat("---|", len(p.states)))
	used := map[int][]string{}
	for _, clause := range slices.SortedFunc(maps.Keys(cells), byNumber) {
		var open []string
		fmt.Fprintf(b, "| %s |", clause)
		for _, state := range p.states {
			var has string
			for _, e := range p.events {
				if strings.ContainsRune(cells[clause][state], e) {
					has += string(e)
					continue
				}
				i := slices.IndexFunc(reasons, func(r reason) bool {
					ofPart := r.part == "" || r.part == p.title
					return ofPart && matchesAll(r.clauses, clause) && matchesAll(r.states, state) && strings.ContainsRune(r.events, e)
				})
				if i < 0 {
					open = append(open, fmt.Sprintf("%c in %s", e, state))
					continue
				}
				used[i] = append(used[i], clause)
			}
			if has == "" {
				has = "-"
			}
			fmt.Fprintf(b, " %s |", has)
		}
		b.WriteString("\n")
		if open != nil {
			t.Errorf("%s: no rule of %s tries these events (see the letters in MATRIX.md): %s; for those that no rule has to try, add a line to the variable reasons in matrix_test.go",
				p.title, clause, strings.Join(open, ", "))
		}
	}
	fmt.Fprintf(b, "\nThe empty cells:\n\n| Clauses | States | Events | Cells | Why |\n|---|---|---|---|---|\n")
	for _, i := range slices.Sorted(maps.Keys(used)) {
		clauses := slices.Compact(slices.SortedFunc(slices.Values(used[i]), byNumber))
		states := reasons[i].states
		if states == "" {
			states = "all"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %d | %s |\n", strings.Join(clauses, " "), strings.ReplaceAll(states, "|", ", "), reasons[i].events, len(used[i]), reasons[i].why)
	}
	b.WriteString("\n")
}

func matchesAll(pattern, s string) bool {
	return pattern == "" || regexp.MustCompile("^(?:"+pattern+")$").MatchString(s)
}

// byNumber orders clauses as SPEC.md does.
func byNumber(a, b string) int {
	number := func(s string) (n int) { _, _ = fmt.Sscanf(s[1:], "%d", &n); return n }
	if a[0] != b[0] {
		return strings.Index("MRASHNGP", a[:1]) - strings.Index("MRASHNGP", b[:1])
	}
	return number(a) - number(b)
}

// MATRIX.md shows which events the rules of each clause try in which states. It is measured: the rules run
// against implementations that note it. Each empty cell has a reason.
//
//	go test -run Matrix$ ./leasetest -v        prints it
//	go test -run Matrix$ ./leasetest -update   writes the file
func TestMatrix(t *testing.T) {
	if raced && !*update {
		t.Skip("the race detector changes the order of goroutines, and so what is measured; .ci/run measures without it")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // goroutines run in the same order each time
	want, err := os.ReadFile("MATRIX.md")
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for range 5 { // and if the system comes between them, they do the next time
		if got = matrixText(t); got == string(want) || *update {
			break
		}
	}
	t.Log("\n" + got)
	switch {
	case *update:
		if err := os.WriteFile("MATRIX.md", []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	case got != string(want):
		t.Errorf("MATRIX.md is not what the rules do: run go test -run 'Matrix$' ./leasetest -update, and look at the difference")
	}
}

// matrixText is the text of MATRIX.md.
func matrixText(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# What the rules try\n\nThis file is written by `go test -run 'Matrix$' ./leasetest -update`, and a test keeps it up to date. It is\nmeasured: the rules of each clause run against implementations that note what is done to them. A letter\nin a cell says that a rule of the clause tries that event in that state:\n\n")
	for _, e := range events {
		fmt.Fprintf(&b, "- `%s`: %s\n", e.letter, e.what)
	}
	b.WriteString("\nGuards have two states, and every rule of them tries both. `released` is available with an ID that is\nstill known.\n\n")
	for _, p := range matrixParts {
		p.text(t, &b)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// reasons say why cells of the matrix are empty. The first that fits counts.
var reasons = []reason{
	// Stores.
	{"Stores", "R2", "", "otfr2c", "a record that is corrupt is in none of the states; the rules spoil one and write corrupt ones"},
	{"Stores", "R3", "", "tfr2c", "the clause is about one writing and reading; S3 reads every state after reopening and forgetting, S8 through another client"},
	{"Stores", "S1", "", "t", "S5 and S4 swap after time has passed"},
	{"Stores", "S1", "", "fr", "S2 and S3 swap every state after reopening and forgetting"},
	{"Stores", "S1", "", "2", "S2 and S8 have another client swap every state"},
	{"Stores", "S2", "", "tc", "a version changes with a swap alone; S1 swaps under contexts that end"},
	{"Stores", "S2", "", "f", "only what is available, expired or broken is forgotten (S9), and its absence is tried"},
	{"Stores", "S3", "leased|infinite|breaking", "f", "what is locked is not forgotten: S9"},
	{"Stores", "S3", "", "t2c", "an epoch is kept or not, for every client; another client is S8, a context S1"},
	{"Stores", "S4", "", "tf2c", "the store has one time for all records: one state is enough"},
	{"Stores", "S4", "", "r", "the store has one time for all records: one state is enough"},
	{"Stores", "S5", "available|released|infinite|broken|expired", "otfr2c", "a state without an until does not come to it"},
	{"Stores", "S5", "leased|breaking", "fr2c", "the rule of leased stands for both states that end; forgetting is S9, another client S4, a context S1"},
	{"Stores", "S6", "", "otfr2c", "a name is taken for another one whatever the record's state"},
	{"Stores", "S7", "released", "o", "a change of what is unlocked need not be signalled"},
	{"Stores", "S7", "", "tfr2c", "a watch depends on the change and not on what came before; one state is enough"},
	{"Stores", "S8", "", "tfrc", "a stale answer is one after a swap; reopening and forgetting are S3"},
	{"Stores", "S9", "available|released", "otfr2c", "what is available may be forgotten at any time: S3 keeps its epoch"},
	{"Stores", "S9", "", "tfr2c", "forgetting depends on the state and the time in it; clients and contexts have no part in it"},
	{"Stores", "S10", "available|released|broken|expired", "otfr2c", "a list need not show what is unlocked"},
	{"Stores", "S10", "", "tfr2c", "a list shows what a load shows: one locked state stands for the others"},

	// Authorities.
	{"Authorities", "M.*|A1|A7|A8", "", "r", "an authority decides by the record alone; M4 and S3 open it again in every state"},
	{"Authorities", "M.*|A1|A7|A8", "", "2", "an authority decides by the record alone; A4 has another client ask in every state, with every request"},
	{"Authorities", "M.*|A1|A7|A8", "", "c", "a context has no part in a decision; A6 tries every request in every state under a done one"},
	{"Authorities", "M.*", "", "ot", "the clause is about other states; M1 tries every request in every state, and M5 the ends"},
	{"Authorities", "R2", "", "otr2c", "a record that cannot be read has no state; its name is the one of a lease that is not known"},
	{"Authorities", "R.*", "", "otr2c", "the clause is about what a record shows; M1 compares it after every request in every state"},
	{"Authorities", "A1|A7|A8", "", "ot", "the clause is about other states; M1 tries every request in every state"},
	{"Authorities", "A2|A3|A4|A5|A6", "", "otr2c", "the other clauses of A try it: time is A5 and M5, reopening M4 and S3, another client A2 and A4, contexts A3 and A6"},
	{"Authorities", "S.*", "", "otr2c", "TestStore tries it on stores; an authority is tried with one record"},

	// Holders.
	{"Holders", "M4|H22", "", "ot2cx", "tokens are the authority's; H22 is about the making of a holder, before it has a state"},
	{"Holders", "", "closed", "ot2cx", "H18 tries every method of a closed holder, and that nothing comes after"},
	{"Holders", "H13|H16|H5|H17", "breaking", "ot2cx", "H13 has the time, H5 the acquire, H17 the release and H13 the outage of a breaking lease"},
	{"Holders", "", "breaking", "ot2cx", "the clause is not about breaks; H13, H5 and H17 are"},
	{"Holders", "H1|H2|H3|H4|H6|H7|H8|H21", "lost|released", "ot2cx", "a holder that has ended its incarnation acquires as one that never held; H1 and H7 try both"},
	{"Holders", "N.*", "", "ot2cx", "a run acquires and releases by itself; H1, H15, H17 and H20 try the states"},
	{"Holders", "H9|H10|H11|H12|H13|H14|H15|H16|H19|H20", "idle|lost|released", "ot2cx", "nothing is held then: H1, H7 and H17 say what a holder does"},
	{"Holders", "", "", "2", "what another holder may have is decided by the authority; H1, H8 and H9 have others contend"},
	{"Holders", "", "", "c", "contexts belong to calls; H2, H5, H14, H17, H18 and H21 cancel those that there are"},
	{"Holders", "", "lost|released", "x", "nothing is held then, and what is sent gives up what was held: H3, H7 and H17"},
	{"Holders", "", "", "x", "outages are tried by H1, H3, H7, H9, H11, H15 and H17"},
	{"Holders", "", "", "ot", "the clause is about other states"},
}
