package redislease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/engine"
)

// The type use describes the use of a client. The field underWay is the number of exchanges of the client
// that have not ended yet.
type use struct {
	underWay int
	answered time.Time // when the server last answered
	retired  bool      // close the client after the last exchange
}

// The method exchange sends requests in one pipeline, over one connection.
func (s *Store) exchange(ctx context.Context, pass engine.Pass, all []request) []answer {
	server := s.use(all[len(all)-1].server)
	l, leave := s.enter(server)
	defer leave()
	sent := time.Now()
	pipe := server.Pipeline()
	var info, acknowledged *redis.Cmd
	if s.checkDue(l) {
		info = pipe.Do(ctx, "info", "memory", "persistence")
	}
	answers := make([]answer, len(all))
	for i, r := range all {
		for _, c := range r.commands {
			answers[i].sent = append(answers[i].sent, pipe.Do(ctx, c...))
		}
	}
	if slices.ContainsFunc(all, func(r request) bool { return r.wait }) {
		acknowledged = pipe.Do(ctx, "wait", s.options.Replicas, milliseconds(s.options.ReplicaTimeout))
	}
	_, execErr := pipe.Exec(ctx)
	failed := execErr != nil && redisError(execErr) == ""
	if all[0].kind == renewal {
		pass = pass.Renewed(renewed(answers))
	}
	pass.Leave(!failed)
	if !failed {
		s.servers.answered(server)
	}
	silent := s.end(server, sent, execErr, failed)
	policy := s.checked(l, info)
	misplaced := wrongServer(execErr)
	for i := range answers {
		a := &answers[i]
		a.err = policy
		for _, c := range a.sent {
			if c.Err() == nil && c.Val() == nil && execErr != nil {
				a.err = execErr // there was no connection
			}
			misplaced = misplaced || wrongServer(c.Err())
		}
		if all[i].wait {
			n, err := acknowledged.Int()
			if err == nil && n < s.options.Replicas {
				err = fmt.Errorf("done at %s, but acknowledged by %d of %d replicas within %v, so that %w", server.Options().Addr, n, s.options.Replicas, s.options.ReplicaTimeout, errReplicas)
			}
			a.unacknowledged = err
			misplaced = misplaced || err != nil
		}
	}
	if misplaced || silent {
		s.retire(s.servers.failOver(ctx, server, !misplaced && timedOut(execErr)), misplaced)
	}
	if _, many := s.servers.(cluster); many && silent {
		for k := range l.queues {
			l.queues[k].Return(errSilent)
		}
	}
	if silent && s.servers.current(server) != server {
		_ = server.Close() // ends the other exchanges, for which later requests would wait
	}
	return answers
}

// The function renewed counts the renewals that were carried out and did not conflict.
func renewed(answers []answer) (n int) {
	for _, a := range answers {
		if a.sent[len(a.sent)-1].Err() == nil {
			n++
		}
	}
	return n
}

// Every exchange first calls the method use, which returns the client for the exchange. This is the given
// client or, if the given client was replaced, the new client. The method counts the exchange as under way
// until the method end is called.
func (s *Store) use(server *redis.Client) *redis.Client {
	server = s.servers.current(server)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[server]
	if u == nil {
		u = new(use)
		s.uses[server] = u
	}
	u.underWay++
	return server
}

// The method end is called when an exchange of a client has ended. If the client was replaced and this was
// its last exchange, the method closes the client. The result is true if the Store must leave the server,
// because this exchange was not answered. But if the exchange has only timed out, the result is false in two
// cases: if its time was so short that the server may only be far away, and if the server has answered another
// exchange after this one was sent. Such a server is only slow, and a new connection would make it slower.
func (s *Store) end(server *redis.Client, sent time.Time, err error, failed bool) (silent bool) {
	s.mu.Lock()
	u := s.uses[server]
	u.underWay--
	if !failed {
		u.answered = time.Now()
	}
	silent = failed && (!timedOut(err) || time.Since(sent) >= leastWait && u.answered.Before(sent))
	if u.underWay == 0 {
		delete(s.uses, server)
	}
	ends := u.underWay == 0 && u.retired
	s.mu.Unlock()
	if ends {
		_ = server.Close()
	}
	return silent
}

// leastWait is how long a request must have waited in vain before the Store leaves the server.
const leastWait = 250 * time.Millisecond

func timedOut(err error) bool {
	var t net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// wrongServer reports whether a server has certainly refused a request that another server might carry out.
func wrongServer(err error) bool {
	word, _, _ := strings.Cut(redisError(err), " ")
	switch word {
	case "READONLY", "NOREPLICAS", "MOVED", "LOADING", "MASTERDOWN", "CLUSTERDOWN":
		return true
	}
	return errors.Is(err, redis.ErrClosed) // the client was replaced before it sent the request
}

// retire closes a client that was replaced, as soon as its last exchange has ended. If misplaced is true, the
// client was connected to the wrong server, so retire also ends the watches at that server.
func (s *Store) retire(old *redis.Client, misplaced bool) {
	if old == nil {
		return
	}
	s.mu.Lock()
	l, u := s.listener, s.uses[old]
	if u != nil {
		u.retired = true
	}
	s.mu.Unlock()
	if u == nil {
		_ = old.Close()
	}
	if l != nil && misplaced {
		l.lose(errLost)
	}
}

// The constant lastAnswers is the time for which the Store, after a failover, waits for the last answers of
// the earlier primary. The time is short because a frozen primary sends no answers, and later requests have
// to wait meanwhile.
const lastAnswers = 200 * time.Millisecond

// findPrimary asks the sentinels for the address of the primary, if there are sentinels and their last answer
// is old. If there is a new primary, the Store then connects to it. findPrimary does not wait for the answer.
func (s *Store) findPrimary() {
	if ask := s.servers.check(); ask != nil && s.begin() {
		go func() {
			defer s.tasks.End()
			if old := ask(); old != nil {
				s.retire(old, true)
				time.Sleep(lastAnswers)
				_ = old.Close()
			}
		}()
	}
}
