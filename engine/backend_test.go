package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/vectors"
)

// A fake is a Backend in memory, with one sequence of revisions. It has no clock and no leases.
type fake struct {
	mu        sync.Mutex
	revision  int64
	entries   map[string]engine.Entry
	watches   map[string][]chan struct{}
	corrupt   map[string]error // the errors of reads of corrupt records, by name
	exchanges int
	before    func() // every request calls before on the way to the engine, and after on the way back
	after     func()
	commit    func(old, next engine.Retained) // the engine calls commit while it holds mu
	asked     func()                          // every request for the Revision calls asked on the way back
}

func newFake() *fake {
	return &fake{revision: 1, entries: map[string]engine.Entry{}, corrupt: map[string]error{}, watches: map[string][]chan struct{}{}}
}

func (e *fake) exchange(f func()) {
	if e.before != nil {
		e.before()
	}
	e.mu.Lock()
	e.exchanges++
	f()
	e.mu.Unlock()
	if e.after != nil {
		e.after()
	}
}

// spoil makes the record of a name corrupt, as an edit by hand does.
func (e *fake) spoil(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.put(name, e.current(name).Retained)
	e.corrupt[name] = &lease.OpError{Op: "load", Name: name, Err: lease.ErrCorrupt}
}

func (e *fake) current(name string) engine.Entry {
	if found, ok := e.entries[name]; ok {
		return found
	}
	absent := engine.Entry{Version: fmt.Sprint("absent-", e.revision), Revision: e.revision}
	absent.Record.Epoch, absent.Unwritten = uint64(e.revision), true
	return absent
}

func (e *fake) put(name string, next engine.Retained) engine.Entry {
	if e.commit != nil {
		e.commit(e.current(name).Retained, next)
	}
	e.revision++
	e.entries[name] = engine.Entry{Retained: next, Version: strconv.FormatInt(e.revision, 10), Revision: e.revision}
	for _, signals := range e.watches[name] {
		select {
		case signals <- struct{}{}:
		default: // a signal is already waiting
		}
	}
	return e.entries[name]
}

func (e *fake) Load(ctx context.Context, name string) (found engine.Entry, _ error) {
	var err error
	e.exchange(func() { found, err = e.current(name), e.corrupt[name] })
	return found, errors.Join(ctx.Err(), err)
}

func (e *fake) Open(ctx context.Context, name string) (found engine.Entry, err error) {
	e.exchange(func() {
		err = e.corrupt[name]
		if found = e.current(name); strings.HasPrefix(found.Version, "absent-") {
			found = e.put(name, found.Retained)
			found.Unwritten = true
			e.entries[name] = found
		}
	})
	return found, errors.Join(ctx.Err(), err)
}

func (e *fake) Swap(_ context.Context, name, old string, next engine.Retained) (found engine.Entry, err error) {
	e.exchange(func() {
		found = e.current(name)
		absent := strings.HasPrefix(old, "absent-") && strings.HasPrefix(found.Version, "absent-")
		if found.Version != old && !absent {
			err = lease.ErrConflict
			if corrupt := e.corrupt[name]; corrupt != nil {
				found, err = engine.Entry{}, corrupt
			}
			return
		}
		found = e.put(name, next)
	})
	return found, err
}

func (e *fake) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return func(yield func(engine.NamedEntry, error) bool) {
		var all map[string]engine.Entry
		var corrupt map[string]error
		e.exchange(func() { all, corrupt = maps.Clone(e.entries), maps.Clone(e.corrupt) })
		for name, found := range all {
			if ctx.Err() == nil && strings.HasPrefix(name, prefix) && !yield(engine.NamedEntry{Name: name, Entry: found}, corrupt[name]) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(engine.NamedEntry{}, err)
		}
	}
}

func (e *fake) Revision(context.Context) (revision int64, _ error) {
	e.exchange(func() { revision = e.revision })
	if e.asked != nil {
		e.asked()
	}
	return revision, nil
}

func (e *fake) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	signals := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watches[name] = append(e.watches[name], signals)
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if i := slices.Index(e.watches[name], signals); i >= 0 {
			e.watches[name] = slices.Delete(e.watches[name], i, i+1)
			close(signals)
		}
	})
	return signals, ctx.Err()
}

// loseWatches ends all watches.
func (e *fake) loseWatches() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range e.watches {
		for _, signals := range all {
			close(signals)
		}
	}
	clear(e.watches)
}

// count returns how many requests f sends to the engine.
func (e *fake) count(f func()) int {
	sent := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.exchanges
	}
	before := sent()
	f()
	return sent() - before
}

func newStore(t testing.TB, e engine.Backend, o engine.Options) *engine.Store {
	t.Helper()
	s, err := engine.NewStore(e, &o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	idA = vectors.MustParseID("aaaaaaaa-0000-4000-8000-000000000001")
	idB = vectors.MustParseID("bbbbbbbb-0000-4000-8000-000000000002")
)

func acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Duration: d}
}

func renew(id lease.ID) lease.Request   { return lease.Request{Action: lease.ActionRenew, ID: id} }
func release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }
func breaks(p time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionBreak, Period: lease.Grace(p)}
}
