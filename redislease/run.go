package redislease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
)

// A request is attempted at most maxAttempts times, with retryPause between two attempts. A request
// is repeated only if a server of a cluster has answered that it did not carry out the request.
const (
	maxAttempts = 8
	retryPause  = 25 * time.Millisecond
)

// run runs a script on the record and the floor of a name. If ctx is done, run returns soon. run
// sends the script a second time only if a server answers that it did not run the script.
func (s *Store) run(ctx context.Context, script *script, name string, args ...any) (reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys := s.keys(script, name)
	return await(ctx, s, func() (reply, error) { return s.route(ctx, script, keys, args) })
}

// await calls f and returns its results. If ctx is done first, await returns ctx.Err(). The package
// go-redis itself respects only the deadline of a context, and ignores its cancellation.
func await[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return f()
	}
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	var none T
	if !s.start(func() {
		value, err := f()
		answered <- answer{value, err}
	}) {
		return none, lease.ErrClosed
	}
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// start calls f in a new goroutine. start returns false if the Store is closed.
func (s *Store) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.tasks.Start(f)()
	return true
}

// route sends a script to the server that has the keys.
func (s *Store) route(ctx context.Context, script *script, keys []string, args []any) (reply, error) {
	for try := 1; ; try++ {
		server, err := s.servers.serverFor(ctx, keys[0])
		if err != nil {
			return nil, err
		}
		r, err := s.sendScript(ctx, server, false, script, keys, args)
		word, rest, _ := strings.Cut(redisError(err), " ")
		switch word {
		case "MOVED":
			s.servers.slotMoved(ctx)
		case "ASK": // the slot is being moved, and another server already has the keys
			_, addr, _ := strings.Cut(rest, " ")
			if server, err = s.servers.serverAt(ctx, addr); err != nil {
				return nil, err
			}
			r, err = s.sendScript(ctx, server, true, script, keys, args)
		}
		word, _, _ = strings.Cut(redisError(err), " ")
		if word != "MOVED" && word != "TRYAGAIN" || try == maxAttempts {
			return r, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// sendScript sends the hash of a script to a server. If the server does not know the hash,
// sendScript sends the whole script. sendScript sends the command WAIT over the same connection as
// the script, because WAIT waits only for writes over its own connection.
func (s *Store) sendScript(ctx context.Context, server *redis.Client, asking bool, script *script, keys []string, args []any) (reply, error) {
	command := make([]any, 0, 3+len(keys)+len(args))
	command = append(command, "evalsha", script.hash, len(keys))
	for _, k := range keys {
		command = append(command, k)
	}
	command = append(command, args...)
	r, err := s.sendCommand(ctx, server, asking, command)
	if strings.HasPrefix(redisError(err), "NOSCRIPT") {
		command[0], command[1] = "eval", script.source
		r, err = s.sendCommand(ctx, server, asking, command)
	}
	return r, script.locate(err, args)
}

func (s *Store) sendCommand(ctx context.Context, server *redis.Client, asking bool, command []any) (reply, error) {
	if s.options.Replicas == 0 && !asking {
		return replyOf(server.Do(ctx, command...))
	}
	pipe := server.Pipeline() // one connection
	var allowed *redis.Cmd
	if asking {
		allowed = pipe.Do(ctx, "asking")
	}
	sent := pipe.Do(ctx, command...)
	var acknowledged *redis.Cmd
	if s.options.Replicas > 0 {
		acknowledged = pipe.Do(ctx, "wait", s.options.Replicas, milliseconds(s.options.ReplicaTimeout))
	}
	_, execErr := pipe.Exec(ctx)
	if sent.Err() == nil && sent.Val() == nil && execErr != nil {
		return nil, execErr // there was no connection
	}
	r, err := replyOf(sent)
	if err != nil && allowed != nil && redisError(allowed.Err()) != "" {
		return nil, allowed.Err() // without ASKING, the server answers only that another server has the keys
	}
	if err != nil || acknowledged == nil {
		return r, err
	}
	n, err := acknowledged.Int()
	if err == nil && n < s.options.Replicas {
		err = &replicaError{server.Options().Addr, n, s.options.Replicas, s.options.ReplicaTimeout}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// redisError returns the text of an error that a server sent. For any other error it returns "".
func redisError(err error) string {
	var e redis.Error
	if err != nil && errors.As(err, &e) {
		return e.Error()
	}
	return ""
}

// A replicaError reports that too few replicas have acknowledged a write. The write can still take
// effect.
type replicaError struct {
	addr      string
	got, want int
	within    time.Duration
}

func (e *replicaError) Error() string {
	return fmt.Sprintf("done at %s, but acknowledged by %d of %d replicas within %v, so that a failover may undo it", e.addr, e.got, e.want, e.within)
}
