package redislease

import (
	"context"
	"errors"
	"fmt"
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
	keys := s.keys(script, name)
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		server, err := s.serverFor(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		to := request{kind: k, name: name, server: server}
		r, err := s.runAt(ctx, to, false, script, keys, c, args)
		if _, addr, asks := strings.Cut(redisError(err), " "); asks && strings.HasPrefix(redisError(err), "ASK ") {
			// The slot is being moved, and another server already has the keys.
			_, addr, _ = strings.Cut(addr, " ")
			if to.server, err = await(ctx, s, func() (*redis.Client, error) { return s.servers.serverAt(ctx, addr) }); err != nil {
				return nil, err
			}
			r, err = s.runAt(ctx, to, true, script, keys, c, args)
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

// runAt runs the script at one server, and tells the gate of the server about the change.
func (s *Store) runAt(ctx context.Context, to request, asking bool, script *script, keys []string, c *change, args []any) (r reply, err error) {
	if c == nil {
		return s.sendScript(ctx, to, asking, script, keys, args)
	}
	l, leave := s.enter(to.server)
	defer leave()
	err = l.gate.Swap(to.name, c.old, c.next, func(q engine.Request) (err error) {
		if q.Urgent {
			to.kind = max(to.kind, urgent)
		}
		if r, err = s.sendScript(ctx, to, asking, script, keys, args); err == nil && !r.wrote() {
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

// sendScript sends the hash of a script to a server. If the server does not know the hash, sendScript sends
// the whole script.
func (s *Store) sendScript(ctx context.Context, to request, asking bool, script *script, keys []string, args []any) (reply, error) {
	command := make([]any, 0, 3+len(keys)+len(args))
	command = append(command, "evalsha", script.hash, len(keys))
	for _, k := range keys {
		command = append(command, k)
	}
	command = append(command, args...)
	r, err := s.sendCommand(ctx, to, asking, command)
	if strings.HasPrefix(redisError(err), "NOSCRIPT") {
		command[0], command[1] = "eval", script.source
		r, err = s.sendCommand(ctx, to, asking, command)
	}
	return r, script.locate(err, args)
}

func (s *Store) sendCommand(ctx context.Context, to request, asking bool, command []any) (reply, error) {
	to.commands, to.wait = [][]any{command}, s.options.Replicas > 0
	if asking {
		to.commands = [][]any{{"asking"}, command}
	}
	answered, err := s.send(ctx, to)
	if err != nil {
		return nil, err
	}
	r, err := replyOf(answered.sent[len(to.commands)-1])
	switch allowed := answered.sent[0].Err(); {
	case err != nil && asking && redisError(allowed) != "":
		return nil, allowed // without ASKING, the server answers only that another server has the keys
	case err == nil && answered.unacknowledged != nil:
		return nil, answered.unacknowledged
	}
	return r, err
}

// redisError returns the text of an error that a server sent, and "" for any other error.
func redisError(err error) string {
	var e redis.Error
	if err != nil && errors.As(err, &e) {
		return e.Error()
	}
	return ""
}

// A replicaError reports that too few replicas have acknowledged a write, which can still take effect.
type replicaError struct {
	addr      string
	got, want int
	within    time.Duration
}

func (e *replicaError) Error() string {
	return fmt.Sprintf("done at %s, but acknowledged by %d of %d replicas within %v, so that a failover may undo it", e.addr, e.got, e.want, e.within)
}
