package redislease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A request is attempted at most maxAttempts times. Between two attempts, the Store waits for the time
// retryPause. A request is repeated only if a server has answered that it did not carry out the request.
const (
	maxAttempts = 8
	retryPause  = 25 * time.Millisecond
)

// errSilent is the error of a request that was not sent, because a server of a cluster did not answer another
// request. By now, a replica may have taken the place of that server.
var errSilent = errors.New("the server did not answer another request")

type change struct{ old, next lease.Record }

// The method run sends a script to the server that stores the lease with the given name, and returns the
// reply. When ctx is done, the method returns without waiting for the reply. If the change c is not nil, the
// script must make that change. If the script did not make the change, the method returns the reply and
// [lease.ErrConflict].
func (s *Store) run(ctx context.Context, k kind, script *script, name string, c *change, args ...any) (reply, error) {
	if engine.IsUrgent(ctx) {
		k = max(k, urgent)
	}
	s.findPrimary()
	call := s.call(script, name, args...)
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		server, err := s.serverFor(ctx, s.Key(name))
		if err != nil {
			return nil, err
		}
		to := request{kind: k, name: name, server: server, wait: s.options.Replicas > 0}
		r, err := s.runAt(ctx, to, script, call, c)
		if _, addr, asks := strings.Cut(redisError(err), " "); asks && strings.HasPrefix(redisError(err), "ASK ") {
			// The slot is being moved, and another server already has the keys.
			_, addr, _ = strings.Cut(addr, " ")
			if to.server, err = await(ctx, s, func() (*redis.Client, error) { return s.servers.serverAt(ctx, addr) }); err != nil {
				return nil, err
			}
			to.asking = true
			r, err = s.runAt(ctx, to, script, call, c)
		}
		repeat := wrongServer(err) || strings.HasPrefix(redisError(err), "TRYAGAIN") || errors.Is(err, errSilent)
		if !repeat || try == maxAttempts {
			return r, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// runAt sends one call of a script to a server, and tells the gate of the server about the change.
func (s *Store) runAt(ctx context.Context, to request, script *script, call []any, c *change) (r reply, err error) {
	if c == nil {
		return s.sendCall(ctx, to, script, call)
	}
	l, leave := s.enter(to.server)
	defer leave()
	err = l.gate.Swap(to.name, c.old, c.next, func(q engine.Request) (err error) {
		if q.Urgent {
			to.kind = max(to.kind, urgent)
		}
		if r, err = s.sendCall(ctx, to, script, call); err == nil && !r.wrote() {
			err = lease.ErrConflict
		}
		return err
	})
	return r, err
}

// serverFor returns the primary that stores a key. For a cluster, this may take a request.
func (s *Store) serverFor(ctx context.Context, key string) (*redis.Client, error) {
	if one, ok := s.servers.(*single); ok {
		return one.serverFor(ctx, key)
	}
	return await(ctx, s, func() (*redis.Client, error) { return s.servers.serverFor(ctx, key) })
}

// await calls f with [engine.Call], because go-redis respects only the deadline of a context and ignores its
// cancellation. [Store.Close] waits until f has returned.
func await[T any](ctx context.Context, s *Store, f func() (T, error)) (none T, err error) {
	if !s.begin() {
		return none, lease.ErrClosed
	}
	return engine.Call(ctx, func() (T, error) {
		defer s.tasks.End()
		return f()
	})
}

// begin registers a task for which [Store.Close] must wait. The caller must end the task with s.tasks.End. If
// the Store is closed, begin returns false.
func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.tasks.Begin()
	}
	return !s.closed
}

// sendCall sends one call of a script to a server, and returns the reply.
func (s *Store) sendCall(ctx context.Context, to request, script *script, call []any) (reply, error) {
	answered, err := s.sendScript(ctx, to, script, call)
	if err != nil {
		return nil, err
	}
	r, err := replyOf(answered.sent[len(answered.sent)-1])
	switch allowed := answered.sent[0].Err(); {
	case err != nil && to.asking && redisError(allowed) != "":
		return nil, allowed // without ASKING, the server answers only that another server has the keys
	case err == nil && answered.unacknowledged != nil:
		return nil, answered.unacknowledged
	}
	return r, script.locate(err, call[1+script.keys:])
}

// sendScript sends calls of a script to a server, with the hash of the script. If the server does not know the
// hash, sendScript sends the whole script.
func (s *Store) sendScript(ctx context.Context, to request, script *script, calls ...[]any) (answered answer, err error) {
	for _, by := range [][]any{{"evalsha", script.hash}, {"eval", script.source}} {
		to.commands = nil
		if to.asking {
			to.commands = [][]any{{"asking"}}
		}
		for _, call := range calls {
			to.commands = append(to.commands, slices.Concat(by, call))
		}
		answered, err = s.send(ctx, to)
		unknown := func(c *redis.Cmd) bool { return strings.HasPrefix(redisError(c.Err()), "NOSCRIPT") }
		if err != nil || !slices.ContainsFunc(answered.sent, unknown) {
			break
		}
	}
	return answered, err
}

// redisError returns the text of an error that a server sent, and "" for any other error.
func redisError(err error) string {
	var e redis.Error
	if err != nil && errors.As(err, &e) {
		return e.Error()
	}
	return ""
}

// errReplicas means that too few replicas have acknowledged a write, which can still take effect.
var errReplicas = errors.New("a failover may undo it")
