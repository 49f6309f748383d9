package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// polled is a store that can only poll.
type polled struct {
	mu       sync.Mutex
	versions map[string]string
	err      error
	reads    []string // the names of each Read
	hangs    bool     // Read waits for the end of its context
}

func (p *polled) set(name, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions[name] = version
}

// change calls f, which changes the store.
func (p *polled) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// lastRead returns the names of the last Read, and how many there were.
func (p *polled) lastRead() (names string, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads[len(p.reads)-1], len(p.reads)
}

func (p *polled) read(ctx context.Context, names []string, seen func(name, version string)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(names)
	p.reads = append(p.reads, fmt.Sprint(names))
	if p.hangs {
		p.mu.Unlock()
		<-ctx.Done()
		p.mu.Lock()
		return ctx.Err()
	}
	for _, name := range names {
		if v, ok := p.versions[name]; ok {
			seen(name, v)
		}
	}
	return p.err
}

// begin returns a store, its Poller with an interval of 100 ms, and a watch of "a", which has the version 1.
func begin(t *testing.T) (*polled, *engine.Poller, <-chan struct{}) {
	t.Helper()
	s := &polled{versions: map[string]string{"a": "1"}}
	p := &engine.Poller{Every: 100 * time.Millisecond, Read: s.read}
	t.Cleanup(p.Close)
	return s, p, watchOf(t, p, t.Context(), "a")
}

func watchOf(t *testing.T, p *engine.Poller, ctx context.Context, name string) <-chan struct{} {
	t.Helper()
	c, err := p.Watch(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A change is signalled at the next poll, once, and only to the watches of its name.
func TestPollerSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, a := begin(t)
		absent := watchOf(t, p, t.Context(), "new")
		time.Sleep(time.Second)
		wantWatch(t, "without a change", a, false, true)
		s.set("a", "2")
		time.Sleep(101 * time.Millisecond)
		wantWatch(t, "after a change", a, true, true)
		wantWatch(t, "a name without a record", absent, false, true)
		time.Sleep(time.Second)
		wantWatch(t, "no second signal", a, false, true)
		s.set("new", "1")
		time.Sleep(101 * time.Millisecond)
		wantWatch(t, "a new record", absent, true, true)
		if last, _ := s.lastRead(); last != "[a new]" {
			t.Errorf("one Read for all: %s", last)
		}
	})
}

// Changed signals at once, and the next poll does not signal the same version again. Poke polls at once.
func TestPollerOwnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, a := begin(t)
		s.set("a", "2")
		p.Changed("a", "2")
		wantWatch(t, "Changed", a, true, true)
		p.Changed("a", "2")
		time.Sleep(time.Second)
		wantWatch(t, "the same version", a, false, true)
		s.set("a", "3")
		before := time.Now()
		p.Poke()
		<-a
		if took := time.Since(before); took > 0 {
			t.Errorf("Poke: signalled after %v", took)
		}
	})
}

// A change between the Read of a new watch and its first poll is signalled.
func TestPollerMissesNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &polled{versions: map[string]string{"a": "1"}}
		p := engine.Poller{Read: func(ctx context.Context, names []string, seen func(name, version string)) error {
			defer s.set("a", "2") // just after it was read
			return s.read(ctx, names, seen)
		}}
		defer p.Close()
		a := watchOf(t, &p, t.Context(), "a")
		time.Sleep(time.Second)
		synctest.Wait()
		wantWatch(t, "after the default of one second", a, true, true)
	})
}

// Nothing is read without watches, and a watch after that is polled again.
func TestPollerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := begin(t)
		ctx, cancel := context.WithCancel(t.Context())
		one := watchOf(t, p, ctx, "one")
		cancel()
		time.Sleep(150 * time.Millisecond)
		wantWatch(t, "after its context", one, false, false)
		if last, _ := s.lastRead(); last != "[a]" {
			t.Errorf("reads %s after the watch of another name has ended", last)
		}

		alone := &polled{versions: map[string]string{}}
		q := engine.Poller{Every: 100 * time.Millisecond, Read: alone.read}
		defer q.Close()
		ctx, cancel = context.WithCancel(t.Context())
		watchOf(t, &q, ctx, "a")
		cancel()
		time.Sleep(time.Minute)
		if _, n := alone.lastRead(); n > 2 {
			t.Errorf("%d reads without a watch", n)
		}
		again := watchOf(t, &q, t.Context(), "a")
		alone.set("a", "1")
		time.Sleep(101 * time.Millisecond)
		wantWatch(t, "after a rest", again, true, true)
	})
}

// While Read fails or does not return, no channel is closed, and the next Read that succeeds shows what has changed.
func TestPollerFails(t *testing.T) {
	for name, fail := range map[string]func(*polled){"an error": func(s *polled) { s.err = errors.New("down") }, "silence": func(s *polled) { s.hangs = true }} {
		synctest.Test(t, func(t *testing.T) {
			s, p, a := begin(t)
			s.mu.Lock()
			fail(s)
			s.versions = map[string]string{} // a Read that fails shows nothing
			s.mu.Unlock()
			time.Sleep(25 * time.Second)
			wantWatch(t, name, a, false, true)
			s.change(func() { s.err, s.hangs = errors.New("down"), false })
			if _, err := p.Watch(t.Context(), "a"); err == nil {
				t.Errorf("%s: another watch: %v", name, err)
			}
			s.change(func() { s.err, s.versions["a"] = nil, "2" })
			time.Sleep(10*time.Second + 101*time.Millisecond) // a Read that hangs ends after 10 s
			wantWatch(t, name+" is over", a, true, true)
		})
	}
}

// An error that a retry cannot fix closes all channels. Later watches work again.
func TestPollerFailsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, a := begin(t)
		s.change(func() { s.err = lease.Permanent(errors.New("gone")) })
		time.Sleep(101 * time.Millisecond)
		wantWatch(t, "gone", a, false, false)
		s.change(func() { s.err = nil })
		a = watchOf(t, p, t.Context(), "a")
		s.set("a", "2")
		time.Sleep(101 * time.Millisecond)
		wantWatch(t, "there again", a, true, true)
	})
}

// Close ends a Read and all watches, and allows no others.
func TestPollerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, a := begin(t)
		s.change(func() { s.hangs = true })
		time.Sleep(time.Second)
		p.Close()
		wantWatch(t, "after Close", a, false, false)
		s.change(func() { s.hangs = false })
		if _, err := p.Watch(t.Context(), "a"); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("Watch after Close: %v", err)
		}
		p.Close()
		var none engine.Poller
		none.Changed("a", "1")
		none.Poke()
		none.Close()
	})
}

// The Read of a new watch ends after 10 s, and with Close, as every other, though the context of the watch goes on.
func TestPollerFirstReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under := 0
		p := engine.Poller{Read: func(ctx context.Context, _ []string, _ func(name, version string)) error {
			under++
			<-ctx.Done()
			under--
			return ctx.Err()
		}}
		began := time.Now()
		if _, err := p.Watch(t.Context(), "a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("Watch returned after %v: %v", time.Since(began), err)
		}
		done := make(chan error, 1)
		go func() { _, err := p.Watch(t.Context(), "a"); done <- err }()
		time.Sleep(time.Second)
		p.Close()
		if under != 0 {
			t.Error("Close has returned while a Read is under way")
		}
		if err := <-done; !errors.Is(err, lease.ErrClosed) {
			t.Errorf("Watch during Close: %v", err)
		}
	})
}

// A bad name is refused before anything is read.
func TestPollerName(t *testing.T) {
	s, p, _ := begin(t)
	if _, err := p.Watch(t.Context(), ""); lease.CodeOf(err) != lease.ErrName || len(s.reads) != 1 {
		t.Errorf("%v after %v", err, s.reads)
	}
}
