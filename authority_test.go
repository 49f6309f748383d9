package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A fakeStore keeps one snapshot for each name, records the calls, and runs a test's function before each.
type fakeStore struct {
	mu          sync.Mutex
	kept        map[string]lease.Snapshot
	writes      int
	calls       []string
	now         time.Time
	uncertainty time.Duration
	loads       func() error                                   // before each Load
	swaps       func(next lease.Record) (commit, notify error) // before each Swap; commit: the error of the write, tell: the error that Swap returns
	shows       bool                                           // if shows is true, Swap returns the current snapshot together with ErrConflict
}

func newStore(r lease.Record) *fakeStore {
	return &fakeStore{kept: map[string]lease.Snapshot{"a": {Record: r, Version: "0"}}, now: noon}
}

func (s *fakeStore) snapshot(name string) lease.Snapshot {
	kept := s.kept[name]
	if kept.Version == "" {
		kept.Version = "0"
	}
	kept.Now, kept.Uncertainty = s.now, s.uncertainty
	return kept
}

func (s *fakeStore) Load(_ context.Context, name string) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "load")
	if s.loads != nil {
		if err := s.loads(); err != nil {
			return lease.Snapshot{}, err
		}
	}
	return s.snapshot(name), nil
}

func (s *fakeStore) Swap(_ context.Context, name string, old lease.Snapshot, next lease.Record) (lease.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "swap")
	var commit, notify error
	if s.swaps != nil {
		commit, notify = s.swaps(next)
	}
	if commit == nil && s.snapshot(name).Version != old.Version {
		commit = lease.ErrConflict
	}
	if commit == lease.ErrConflict {
		if s.shows {
			return s.snapshot(name), fmt.Errorf("as of now: %w", commit)
		}
		return lease.Snapshot{}, commit
	}
	if commit == nil {
		s.writes++
		s.kept[name] = lease.Snapshot{Record: next, Version: strconv.Itoa(s.writes)}
	}
	if err := errors.Join(commit, notify); err != nil {
		return lease.Snapshot{}, err
	}
	return s.snapshot(name), nil
}

// did returns the calls of the store since the previous call of did.
func (s *fakeStore) did() string {
	calls := strings.Join(s.calls, " ")
	s.calls = nil
	return calls
}

var (
	acquireA = lease.Request{Action: lease.ActionAcquire, Proposed: ids["A"], Owner: "one", Duration: time.Minute}
	acquireB = lease.Request{Action: lease.ActionAcquire, Proposed: ids["B"], Owner: "two", Duration: time.Minute}
	renewA   = lease.Request{Action: lease.ActionRenew, ID: ids["A"]}
	read     = lease.Request{Action: lease.ActionRead}
	leasedA  = lease.Record{State: lease.Leased, ID: ids["A"], Owner: "one", Duration: time.Minute, Until: noon.Add(time.Minute), Epoch: 7}
)

// do carries out a request on the lease named "a". It checks the calls of the store and the returned code.
func do(t *testing.T, s *fakeStore, auth lease.Authority, req lease.Request, calls string, code lease.Code) lease.Result {
	t.Helper()
	res, err := auth.Do(t.Context(), "a", req)
	if got := s.did(); got != calls {
		t.Errorf("%v: %q, want %q", req.Action, got, calls)
	}
	if lease.CodeOf(err) != code || (err == nil) != (code == 0) {
		t.Errorf("%v: %v, want %v", req.Action, err, code)
	}
	var op *lease.OpError
	if err != nil && (!errors.As(err, &op) || op.Op != req.Action.String() || op.Name != "a") {
		t.Errorf("%v: %v is not an OpError of it", req.Action, err)
	}
	return res
}

// SPEC A1, A4, A5.
func TestAuthority(t *testing.T) {
	s := newStore(lease.Record{Epoch: 6})
	auth := lease.NewAuthority(s)
	want := lease.Result{Record: leasedA, Now: noon, MinRemaining: time.Minute}
	if got := do(t, s, auth, acquireA, "load swap", 0); got != want || got.MaxRemaining() != time.Minute {
		t.Errorf("acquired: %+v", got)
	}
	s.now = noon.Add(20 * time.Second)
	want.Now, want.MinRemaining = s.now, 40*time.Second
	if got := do(t, s, auth, acquireB, "load", lease.ErrHeldByOther); got != want || got.MaxRemaining() != 40*time.Second {
		t.Errorf("held: %+v", got)
	}
	for _, req := range []lease.Request{
		read, {Action: lease.ActionRead, ID: ids["A"]}, {Action: lease.ActionWrite, ID: ids["A"]}, {Action: lease.ActionChange, ID: ids["B"], Proposed: ids["A"]},
	} {
		if got := do(t, s, auth, req, "load", 0); got != want {
			t.Errorf("%v writes nothing: %+v", req.Action, got)
		}
	}
	if got, err := lease.Inspect(t.Context(), auth, "a"); got != want || err != nil {
		t.Errorf("inspected: %+v, %v", got, err)
	}
	s.did()
	want.Record.Until, want.MinRemaining = s.now.Add(time.Minute), time.Minute
	if got := do(t, s, auth, renewA, "load swap", 0); got != want {
		t.Errorf("renewed: %+v", got)
	}
	// The authority writes a renewal even if the record stays the same, to confirm it.
	if got := do(t, s, auth, renewA, "load swap", 0); got != want {
		t.Errorf("renewed at the same time: %+v", got)
	}
	if left, err := lease.Break(t.Context(), auth, "a", lease.Grace(5*time.Second)); left != 5*time.Second || err != nil {
		t.Errorf("broken: %v, %v", left, err)
	}
	s.did()
	if got := do(t, s, auth, renewA, "load", lease.ErrBroken); got.Record.State != lease.Breaking || got.MinRemaining != 5*time.Second {
		t.Errorf("renewed after the break: %+v", got)
	}
	if left, err := lease.Break(t.Context(), auth, "b", lease.Grace(0)); left != 0 || !errors.Is(err, lease.ErrNotPresent) {
		t.Errorf("broken where nothing is: %v, %v", left, err)
	}
	s.did()
	// The break period is over. A read returns a Broken record, although no request has written one.
	s.now = s.now.Add(5 * time.Second)
	if got := do(t, s, auth, read, "load", 0); got.Record.State != lease.Broken || got.MinRemaining != 0 || got.MaxRemaining() != 0 {
		t.Errorf("broken: %+v", got)
	}
	if got := do(t, s, auth, acquireB, "load swap", 0); got.Record.Epoch != 8 || got.Record.ID != ids["B"] {
		t.Errorf("acquired by another: %+v", got)
	}
}

// SPEC A8.
func TestBreakInfinite(t *testing.T) {
	r := leasedA
	r.Duration, r.Until = lease.Infinite, time.Time{}
	s := newStore(r)
	auth := lease.NewAuthority(s)
	if got := do(t, s, auth, read, "load", 0); got.MinRemaining != lease.Infinite || got.MaxRemaining() != lease.Infinite {
		t.Errorf("infinite: %+v", got)
	}
	if left, err := lease.Break(t.Context(), auth, "a", lease.Period{}); left != 0 || err != nil || s.kept["a"].Record.State != lease.Broken {
		t.Errorf("broken: %v, %v", left, err)
	}
}

// If time passes between the load and the commit, the Result shows the time of the commit. SPEC A5.
func TestCommitIsLater(t *testing.T) {
	for after, want := range map[time.Duration]lease.Result{
		10 * time.Second: {Record: leasedA, Now: noon.Add(10 * time.Second), MinRemaining: 50 * time.Second},
		time.Minute: {
			Record: lease.Record{State: lease.Expired, ID: ids["A"], Owner: "one", Duration: time.Minute, Epoch: 7},
			Now:    noon.Add(time.Minute),
		},
	} {
		s := newStore(lease.Record{Epoch: 6})
		s.swaps = func(lease.Record) (commit, notify error) {
			s.now = noon.Add(after)
			return nil, nil
		}
		if got := do(t, s, lease.NewAuthority(s), acquireA, "load swap", 0); got != want {
			t.Errorf("after %v: %+v", after, got)
		}
	}
}

// If the Uncertainty of a store is not zero, MinRemaining is less than MaxRemaining. SPEC A5.
func TestUncertainty(t *testing.T) {
	for uncertainty, sure := range map[time.Duration]time.Duration{time.Second: 59 * time.Second, time.Minute: 0, time.Hour: 0} {
		s := newStore(leasedA)
		s.uncertainty = uncertainty
		if got := do(t, s, lease.NewAuthority(s), read, "load", 0); got.MinRemaining != sure || got.MaxRemaining() != time.Minute {
			t.Errorf("uncertainty %v: %+v", uncertainty, got)
		}
	}
	r := leasedA
	r.Duration, r.Until = lease.Infinite, time.Time{}
	s := newStore(r)
	s.uncertainty = time.Hour
	if got := do(t, s, lease.NewAuthority(s), read, "load", 0); got.MinRemaining != lease.Infinite {
		t.Errorf("infinite: %+v", got)
	}
	// The Uncertainty of a grant is that of the committed record, and not that of the loaded one.
	s = newStore(lease.Record{Epoch: 6})
	s.swaps = func(lease.Record) (commit, notify error) {
		s.uncertainty = time.Second
		return nil, nil
	}
	if got := do(t, s, lease.NewAuthority(s), acquireA, "load swap", 0); got.MinRemaining != got.MaxRemaining()-time.Second {
		t.Errorf("a grant with an Uncertainty of 1s: %v of %v are certain", got.MinRemaining, got.MaxRemaining())
	}
}

// SPEC A4, S1: after a conflict, the authority decides the request again, from the snapshot that came with
// the conflict, or from a new load.
func TestConflicts(t *testing.T) {
	for shows, calls := range map[bool]string{true: "load swap", false: "load swap load"} {
		s := newStore(lease.Record{Epoch: 6})
		s.shows = shows
		s.swaps = func(lease.Record) (commit, notify error) { // another client writes first
			s.writes++
			s.kept["a"] = lease.Snapshot{Record: leasedA, Version: "x"}
			return nil, nil
		}
		if got := do(t, s, lease.NewAuthority(s), acquireB, calls, lease.ErrHeldByOther); got.Record != leasedA {
			t.Errorf("shows %v: %+v", shows, got)
		}
	}
	for _, shows := range []bool{true, false} {
		s := newStore(lease.Record{Epoch: 6})
		s.shows = shows
		left := 5
		s.swaps = func(lease.Record) (commit, notify error) { // a conflict without a reason
			if left--; left >= 0 {
				return lease.ErrConflict, nil
			}
			return nil, nil
		}
		calls := "load" + strings.Repeat(" swap", 6)
		if !shows {
			calls = strings.Repeat("load swap ", 5) + "load swap"
		}
		if got := do(t, s, lease.NewAuthority(s), acquireA, calls, 0); got.Record != leasedA {
			t.Errorf("shows %v: %+v", shows, got)
		}
	}
}

// SPEC A1, A3: after an error of Swap that is not ErrConflict, the outcome is unknown, and no retry follows. After an error of
// Load, nothing has changed.
func TestUnknownOutcomes(t *testing.T) {
	broken := errors.New("connection lost")
	for name, set := range map[string]func(*fakeStore){
		"load":                  func(s *fakeStore) { s.loads = func() error { return broken } },
		"swap that was applied": func(s *fakeStore) { s.swaps = func(lease.Record) (error, error) { return nil, broken } },
		"swap that was not":     func(s *fakeStore) { s.swaps = func(lease.Record) (error, error) { return broken, nil } },
		"swap after a time limit of the store": func(s *fakeStore) {
			s.swaps = func(lease.Record) (error, error) { return nil, errors.Join(broken, context.DeadlineExceeded) }
		},
		"load of a corrupt record": func(s *fakeStore) {
			s.loads = func() error { return fmt.Errorf("key a: %w: %w", lease.ErrCorrupt, broken) }
		},
	} {
		s := newStore(lease.Record{Epoch: 6})
		set(s)
		res, err := lease.NewAuthority(s).Do(t.Context(), "a", acquireA)
		if !errors.Is(err, broken) || lease.CodeOf(err).Refusal() || res != (lease.Result{}) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if is := lease.CodeOf(err) == lease.ErrUnsent; is != (name == "load") {
			t.Errorf("%s: ErrUnsent is %v: %v", name, is, err)
		}
		if calls := s.did(); strings.Count(calls, "swap") > 1 || strings.Count(calls, "load") != 1 {
			t.Errorf("%s: %s", name, calls)
		}
	}
}

// SPEC A6.
func TestDoneContext(t *testing.T) {
	s := newStore(lease.Record{})
	ctx, cancel := context.WithCancel(t.Context())
	s.swaps = func(lease.Record) (commit, notify error) {
		if len(s.calls) > 20 {
			cancel()
		}
		return lease.ErrConflict, nil // forever
	}
	auth := lease.NewAuthority(s)
	if res, err := auth.Do(ctx, "a", acquireA); !errors.Is(err, context.Canceled) || res != (lease.Result{}) {
		t.Errorf("ended during the call: %+v, %v", res, err)
	}
	if s.did() == "" {
		t.Error("no calls")
	}
	if _, err := auth.Do(ctx, "a", acquireA); !errors.Is(err, context.Canceled) || s.did() != "" {
		t.Errorf("done before the call: %v", err)
	}
}

// Bad arguments are refused before any call of the store. SPEC A7, M18, R6.
func TestBadRequests(t *testing.T) {
	s := newStore(leasedA)
	auth := lease.NewAuthority(s)
	for _, name := range []string{"", "a\x00", "\xff", strings.Repeat("x", 1025)} {
		_, err := auth.Do(t.Context(), name, acquireA)
		var field *lease.FieldError
		if !errors.Is(err, lease.ErrName) || !errors.As(err, &field) || field.Field != "Name" {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	for _, req := range []lease.Request{
		{}, {Action: 99}, {Action: lease.ActionAcquire}, {Action: lease.ActionRenew}, {Action: lease.ActionBreak, Period: lease.Grace(-1)}, {Action: lease.ActionRead, Version: 1},
	} {
		if res, err := auth.Do(t.Context(), "a", req); err == nil || res != (lease.Result{}) || lease.CodeOf(err).Refusal() {
			t.Errorf("%+v: %+v, %v", req, res, err)
		}
	}
	if s.did() != "" {
		t.Error("there were calls")
	}
}

// NewAuthority panics if the limits of the store are out of range. SPEC A7.
func TestLimitsThatAreNone(t *testing.T) {
	defer func() {
		if err, ok := recover().(*lease.FieldError); !ok || err.Field != "Limits.MinDuration" {
			t.Errorf("panicked with %v", err)
		}
	}()
	lease.NewAuthority(limitedStore{limits: lease.Limits{MinDuration: time.Hour, MaxDuration: time.Minute}})
}

type limitedStore struct {
	*fakeStore
	limits lease.Limits
}

func (s limitedStore) Limits() lease.Limits { return s.limits }

// SPEC A7: if a record claims more time than the limits allow, the authority shortens it, also for a request that it
// refuses, and writes it unless the request is a read. TestDecide has every record.
func TestHostileRecords(t *testing.T) {
	minute := lease.Limits{MaxDuration: time.Minute}
	hostile := leasedA
	hostile.Duration, hostile.Until = 1000*time.Hour, noon.Add(1000*time.Hour)
	for req, calls := range map[lease.Request]string{read: "load", acquireB: "load swap", renewA: "load swap"} {
		s := newStore(hostile)
		code := map[lease.Action]lease.Code{lease.ActionAcquire: lease.ErrHeldByOther}[req.Action]
		res := do(t, s, lease.NewAuthority(limitedStore{s, minute}), req, calls, code)
		if res.MaxRemaining() != time.Minute || res.MinRemaining != time.Minute || calls != "load" && s.kept["a"].Record != res.Record {
			t.Errorf("%v: %+v, kept %+v", req.Action, res, s.kept["a"])
		}
	}
	s := newStore(lease.Record{})
	req := acquireA
	req.Duration = time.Minute + 1
	do(t, s, lease.NewAuthority(limitedStore{s, minute}), req, "", lease.ErrDuration)
}

// A watchedStore is a Watcher.
type watchedStore struct{ *fakeStore }

func (s watchedStore) Watch(_ context.Context, name string) (<-chan struct{}, error) {
	return nil, errors.New("watching " + name)
}
