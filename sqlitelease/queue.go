package sqlitelease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// maxBatch limits how long one transaction locks the file.
const maxBatch = 128

// setBatch sets the number of calls in one transaction. The gate admits only the calls of the running
// transaction and of the next one. All other calls wait in front of the gate, where renewals and releases can
// overtake them.
func (s *Store) setBatch(most int) { s.most, s.gate = most, engine.NewGate(2*most) }

// A call contains a function that waits in the queue until the function can run in a transaction.
type call struct {
	ctx  context.Context
	f    func(*tx) error
	pass engine.Pass
	ran  bool // whether f was called
	err  error
	done chan struct{}
}

// do runs f in a transaction that holds the lock of the file, and commits what f has written. When ctx is
// done, do returns, but f may still run. An error of f does not undo what other functions have written.
func (s *Store) do(ctx context.Context, r engine.Request, f func(*tx) error) error {
	r.Urgent = r.Urgent || engine.IsUrgent(ctx)
	pass, err := s.gate.Enter(ctx, r)
	if err != nil {
		return s.waited(err)
	}
	c := &call{ctx: ctx, f: f, pass: pass, done: make(chan struct{})}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		pass.Leave(false)
		return lease.ErrClosed
	}
	s.queue = append(s.queue, c)
	if !s.working {
		s.working = true
		s.tasks.Go(s.work)
	}
	s.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return s.waited(ctx.Err())
	}
}

// waited returns the error of a call whose wait has failed. If another process has locked the file, the error
// says so.
func (s *Store) waited(err error) error {
	if s.locked.Load() {
		return fmt.Errorf("%w; %s", err, advice[sqlite3.SQLITE_BUSY].text)
	}
	return err
}

// The method work runs the calls in the queue until the queue is empty. If a caller stops waiting, its call
// stays in the queue until the method takes the call out of the queue. Because the gate counts such calls,
// the queue stays short while another process locks the file.
func (s *Store) work() {
	for {
		s.mu.Lock()
		n := min(len(s.queue), s.most)
		batch := s.queue[:n:n]
		s.queue = s.queue[n:]
		if n == 0 {
			s.queue, s.working = nil, false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := s.transact(batch)
		for _, c := range batch {
			if err != nil {
				c.err = err
			}
			close(c.done)
			c.pass.Leave(c.ran)
		}
	}
}

// longestPoll is the longest time between two attempts to lock the file.
const longestPoll = 2 * time.Millisecond

// begin locks the file. It tries again until the contexts of all calls are done, or the store is closed.
func (s *Store) begin(batch []*call) error {
	defer s.locked.Store(false)
	waited := false
	pause := time.Until(s.resumes)
	for wait := 200 * time.Microsecond; ; wait = min(2*wait, longestPoll) {
		if pause <= 0 {
			locked, err := s.lock.try()
			if locked {
				// Other programs, such as the sqlite3 shell, respect SQLite's lock, but not the lock file.
				if _, err = s.conn.ExecContext(context.Background(), "begin immediate"); err == nil {
					if waited {
						_ = s.lock.asked() // clears the request of this store; if other stores still wait, they ask again
					}
					return nil
				}
				s.lock.unlock()
			}
			if err != nil && !isBusy(err) {
				return err
			}
			s.lock.ask()
			s.locked.Store(true)
			waited = true
			if !slices.ContainsFunc(batch, func(c *call) bool { return c.ctx.Err() == nil }) {
				return errLocked
			}
			pause = wait/2 + rand.N(wait/2)
		}
		select {
		case <-s.ended:
			return lease.ErrClosed
		case <-time.After(pause):
			pause = 0
		}
	}
}

// end unlocks the file. If another store is waiting for the file, this store then pauses, so that the other
// store has enough time to lock the file.
func (s *Store) end() {
	if s.resumes = (time.Time{}); s.lock.asked() {
		s.resumes = time.Now().Add(longestPoll + longestPoll/4)
	}
	s.lock.unlock()
}
