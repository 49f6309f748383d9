package redislease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
)

// At most maxSenders goroutines send requests to one server, each over a connection of its own and at
// most maxBatch in one pipeline. While no sender waits for answers, each request is a pipeline by itself.
const (
	maxSenders = 8
	maxBatch   = 128
)

// A request is one or more commands that are sent together.
type request struct {
	ctx      context.Context
	commands [][]any
	wait     bool // the replicas must acknowledge the commands

	// The following fields are set before done is closed.
	done           chan struct{}
	sent           []*redis.Cmd
	unacknowledged error // the answer to WAIT, if it is not enough
	err            error // there are no answers
}

// A queue has the requests that wait for a sender.
type queue struct {
	waiting []*request
	senders int
	retired bool // the last sender closes the client
}

// send sends commands to a server, and returns when the server has answered or ctx is done.
func (s *Store) send(ctx context.Context, server *redis.Client, wait bool, commands ...[]any) (*request, error) {
	r := &request{ctx: ctx, commands: commands, wait: wait, done: make(chan struct{})}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, lease.ErrClosed
	}
	q := s.queues[server]
	if q == nil {
		q = &queue{}
		s.queues[server] = q
	}
	q.waiting = append(q.waiting, r)
	if q.senders < min(maxSenders, server.Options().PoolSize) {
		q.senders++
		s.tasks.Start(func() { s.sendWaiting(server, q) })()
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sendWaiting sends requests until none is waiting.
func (s *Store) sendWaiting(server *redis.Client, q *queue) {
	for {
		s.mu.Lock()
		n := min(len(q.waiting), maxBatch)
		batch := slices.Clone(q.waiting[:n])
		q.waiting = slices.Delete(q.waiting, 0, n)
		if n == 0 {
			q.senders--
			if q.senders == 0 {
				delete(s.queues, server)
			}
			ends := q.senders == 0 && q.retired
			s.mu.Unlock()
			if ends {
				_ = server.Close()
			}
			return
		}
		s.mu.Unlock()
		s.exchange(server, batch)
	}
}

// exchange sends the requests that were not given up, in one pipeline.
func (s *Store) exchange(server *redis.Client, batch []*request) {
	batch = slices.DeleteFunc(batch, func(r *request) bool {
		if r.err = r.ctx.Err(); r.err != nil {
			close(r.done)
		}
		return r.err != nil
	})
	if len(batch) == 0 {
		return
	}
	ctx, cancel := untilLast(batch)
	defer cancel()
	pipe := server.Pipeline() // one connection
	var info, acknowledged *redis.Cmd
	if s.checkDue(server.Options().Addr) {
		info = pipe.Do(ctx, "info", "memory", "persistence")
	}
	for _, r := range batch {
		for _, c := range r.commands {
			r.sent = append(r.sent, pipe.Do(ctx, c...))
		}
	}
	if slices.ContainsFunc(batch, func(r *request) bool { return r.wait }) {
		acknowledged = pipe.Do(ctx, "wait", s.options.Replicas, milliseconds(s.options.ReplicaTimeout))
	}
	_, execErr := pipe.Exec(ctx)
	policy := s.checked(server.Options().Addr, info)
	misplaced, failed := wrongServer(execErr), execErr != nil && redisError(execErr) == ""
	for _, r := range batch {
		r.err = policy
		for _, c := range r.sent {
			if c.Err() == nil && c.Val() == nil && execErr != nil {
				r.err = execErr // there was no connection
			}
			misplaced = misplaced || wrongServer(c.Err())
		}
		if r.wait {
			n, err := acknowledged.Int()
			if err == nil && n < s.options.Replicas {
				err = &replicaError{server.Options().Addr, n, s.options.Replicas, s.options.ReplicaTimeout}
			}
			r.unacknowledged = err
			misplaced = misplaced || err != nil
		}
	}
	if misplaced || failed {
		s.retire(s.servers.leave(ctx, server), misplaced)
	}
	for _, r := range batch {
		close(r.done)
	}
}

// untilLast returns a context that ends with the last deadline of the requests.
func untilLast(batch []*request) (context.Context, context.CancelFunc) {
	if len(batch) == 1 {
		return batch[0].ctx, func() {}
	}
	var last time.Time
	for _, r := range batch {
		d, ok := r.ctx.Deadline()
		if !ok {
			return context.WithCancel(context.Background())
		}
		if d.After(last) {
			last = d
		}
	}
	return context.WithDeadline(context.Background(), last)
}

// wrongServer reports whether a server has answered that it did not carry out the request and another may.
func wrongServer(err error) bool {
	word, _, _ := strings.Cut(redisError(err), " ")
	switch word {
	case "READONLY", "NOREPLICAS", "MOVED", "LOADING", "MASTERDOWN", "CLUSTERDOWN":
		return true
	}
	return errors.Is(err, redis.ErrClosed) // the client was replaced before it sent the request
}

// retire closes a client that was replaced, after its last request. If its server is not the right one,
// retire also ends the watches, because they watch that server.
func (s *Store) retire(old *redis.Client, misplaced bool) {
	if old == nil {
		return
	}
	s.mu.Lock()
	l, q := s.listener, s.queues[old]
	if q != nil {
		q.retired = true
	}
	s.mu.Unlock()
	if q == nil {
		_ = old.Close()
	}
	if l != nil && misplaced {
		l.lose(errLost)
	}
}

// findPrimary asks the sentinels, if there are any and the last answer is old, and moves to another
// primary. It does not wait for the answer.
func (s *Store) findPrimary() {
	if s.servers.moved() {
		s.start(func() {
			ctx, cancel := context.WithTimeout(context.Background(), askEvery)
			defer cancel()
			s.retire(s.servers.check(ctx), true)
		})
	}
}

// checkDue reports whether the policy of a server must be checked.
func (s *Store) checkDue(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.AssumeNoEviction || time.Since(s.policies[addr]) < checkEvery {
		return false
	}
	s.policies[addr] = time.Now()
	return true
}

// checked returns an error if the answer to INFO, which may be nil, shows that the server may evict
// keys. In that case, the next request checks the policy again.
func (s *Store) checked(addr string, info *redis.Cmd) error {
	if info == nil {
		return nil
	}
	text, err := info.Text()
	if redisError(err) == "" && err != nil {
		return nil // the requests have the same error
	}
	s.warnIfForgetful(text)
	if err = checkInfo(text, err); err != nil {
		s.mu.Lock()
		delete(s.policies, addr)
		s.mu.Unlock()
	}
	return err
}
