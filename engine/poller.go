package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fencedlease/lease"
)

// A Poller implements watches for a store whose server cannot notify its clients. At a fixed interval, the
// Poller reads the versions of all watched leases, and signals the leases whose version has changed. One
// goroutine polls for all watches, and runs only while there are any.
//
// The Poller signals a change at its next poll, even if the process that made the change has crashed. For
// example, with the default interval and a Read that takes 200 ms, the signal comes after at most 1.2 s.
// While Read fails, signals are late, but none is lost, because the next successful Read shows what has
// changed.
//
// The exported fields must be set before the first call. A Poller is safe for concurrent use.
type Poller struct {
	// Every is the time between two polls. Default: 1 s.
	Every time.Duration

	// The function Read reads the versions of the given names, and reports each of them by calling its last
	// parameter with the name and the version. A version is any text that differs after each change for which
	// [NeedsSignal] returns true. For a name without a record, pass a text that cannot be the version of a
	// record, such as "". For a record that cannot be read, pass the text of the error. A name that Read does
	// not pass to seen counts as unchanged.
	//
	// Read should need only one request, even for many names. The context of Read ends after 10 s, or when
	// the Poller is closed. After an error, the Poller calls Read again. After a [lease.PermanentError], the
	// Poller instead closes the channels of all watches, so that their readers watch again, and get the
	// error.
	Read func(ctx context.Context, names []string, seen func(name, version string)) error

	mu      sync.Mutex
	watches *Watches[string]
	poke    chan struct{}
	stop    context.CancelFunc             // ends the polling goroutine; nil: there is none
	reads   map[*string]context.CancelFunc // cancels the Reads of new watches; the key is the address of the result
	running sync.WaitGroup                 // the polling goroutine and the Reads of new watches
	closed  bool
}

const pollTimeout = 10 * time.Second

// Watch implements [lease.Watcher]. It reads the version of the lease before it returns, so that every later
// change is signalled. If Read fails, Watch returns the error of Read. After Close, Watch returns
// [lease.ErrClosed].
func (p *Poller) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := lease.CheckName(name); err != nil {
		return nil, err
	}
	version, err := p.readFirst(ctx, name)
	if err != nil {
		return nil, err
	}
	return p.Add(ctx, name, version)
}

// readFirst reads the version of the lease for a new watch.
func (p *Poller) readFirst(ctx context.Context, name string) (version string, err error) {
	limited, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return "", lease.ErrClosed
	}
	if p.reads == nil {
		p.reads = map[*string]context.CancelFunc{}
	}
	p.reads[&version] = cancel
	p.running.Add(1)
	p.mu.Unlock()
	defer p.running.Done()
	err = p.Read(limited, []string{name}, func(_, v string) { version = v })
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.reads, &version)
	if p.closed {
		err = lease.ErrClosed
	}
	return version, err
}

// Add is like [Poller.Watch], for a store that has already read the version of the lease.
func (p *Poller) Add(ctx context.Context, name, version string) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, lease.ErrClosed
	}
	if p.watches == nil {
		p.watches, p.poke = new(Watches[string]), make(chan struct{}, 1)
	}
	c, err := p.watches.Add(ctx, name, version)
	if err == nil && p.stop == nil {
		polling, stop := context.WithCancel(context.Background())
		p.stop = stop
		p.running.Go(func() { p.poll(polling) })
	}
	return c, err
}

// Changed signals the watches of a name at once, unless they have already been signalled for the given
// version. A store calls Changed after its own writes, so that watches in the same process need not wait for
// the next poll.
func (p *Poller) Changed(name, version string) {
	if w := p.current(); w != nil {
		w.Update(name, func(last *string) bool {
			changed := *last != version
			*last = version
			return changed
		})
	}
}

// Names returns the names that are watched now. If your function Read has to wait, for example for a lock, it
// should call Names when it has finished waiting. The result then includes the names of watches that have
// begun in the meantime.
func (p *Poller) Names() []string {
	if w := p.current(); w != nil {
		return slices.Collect(maps.Keys(w.All()))
	}
	return nil
}

// Poke makes the Poller poll at once if there are watches.
func (p *Poller) Poke() {
	if p.current() != nil {
		select {
		case p.poke <- struct{}{}:
		default:
		}
	}
}

// Close closes the channels of all watches, and waits until no Read is running.
func (p *Poller) Close() {
	p.mu.Lock()
	p.closed = true
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	for _, cancel := range p.reads {
		cancel()
	}
	if p.watches != nil {
		p.watches.Close(lease.ErrClosed)
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Poller) current() *Watches[string] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.watches
}

// The method poll ends when no watch is left, when Read has returned a permanent error, or when ctx has
// ended. Until then, it polls all watched names.
func (p *Poller) poll(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(p.Every, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.poke:
		case <-tick.C:
		}
		names, last := p.watchedNames(ctx)
		if last {
			return
		}
		limited, cancel := context.WithTimeout(ctx, pollTimeout)
		err := p.Read(limited, names, p.Changed)
		cancel()
		if errors.As(err, new(*lease.PermanentError)) {
			p.lose(ctx, err)
			return
		}
	}
}

// watchedNames returns the names to read. If no name is watched, the polling goroutine ends, and the next
// watch starts a new one.
func (p *Poller) watchedNames(ctx context.Context) (names []string, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	names = slices.Collect(maps.Keys(p.watches.All()))
	if len(names) == 0 && ctx.Err() == nil {
		p.stop()
		p.stop = nil
	}
	return names, len(names) == 0
}

// The method lose must be called after a permanent error. It closes the channels of all watches.
func (p *Poller) lose(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil { // otherwise Close was called
		p.stop()
		p.stop = nil
		p.watches.Close(err)
		p.watches = new(Watches[string])
	}
}
