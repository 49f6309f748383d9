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

// A request is attempted at most maxAttempts times, with pauses of retryPause, and repeated only if a
// server has answered that it did not carry it out.
const (
	maxAttempts = 8
	retryPause  = 25 * time.Millisecond
)

// run runs a script on the record and the floor of a name, and returns soon when ctx is done. It also returns the
// gate of the server that has answered. If admit is not nil, it is called before the script is sent.
func (s *Store) run(ctx context.Context, k kind, script *script, name string, admit func(*engine.Gate) error, args ...any) (reply, *engine.Gate, error) {
	if engine.IsUrgent(ctx) {
		k = max(k, urgent)
	}
	s.findPrimary()
	keys := s.keys(script, name)
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		server, err := s.serverFor(ctx, keys[0])
		if err != nil {
			return nil, nil, err
		}
		gate := s.lineTo(server).gate
		if admit != nil {
			if err := admit(gate); err != nil {
				return nil, nil, err
			}
		}
		r, err := s.sendScript(ctx, request{kind: k, name: name, server: server}, false, script, keys, args)
		if _, addr, asks := strings.Cut(redisError(err), " "); asks && strings.HasPrefix(redisError(err), "ASK ") {
			// The slot is being moved, and another server already has the keys.
			_, addr, _ = strings.Cut(addr, " ")
			if server, err = await(ctx, s, func() (*redis.Client, error) { return s.servers.serverAt(ctx, addr) }); err != nil {
				return nil, nil, err
			}
			gate = s.lineTo(server).gate
			r, err = s.sendScript(ctx, request{kind: k, name: name, server: server}, true, script, keys, args)
		}
		if !wrongServer(err) && !strings.HasPrefix(redisError(err), "TRYAGAIN") || try == maxAttempts {
			return r, gate, err
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// serverFor returns the primary that stores a key. A cluster may have to be asked for it.
func (s *Store) serverFor(ctx context.Context, key string) (*redis.Client, error) {
	if one, ok := s.servers.(*single); ok {
		return one.serverFor(ctx, key)
	}
	return await(ctx, s, func() (*redis.Client, error) { return s.servers.serverFor(ctx, key) })
}

// await returns the results of f, or ctx.Err() if ctx is done first. go-redis itself respects only the
// deadline of a context, and ignores its cancellation.
func await[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
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

// start calls f in a new goroutine. It returns false if the Store is closed.
func (s *Store) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.tasks.Start(f)()
	return true
}

// sendScript sends the hash of a script to a server, or the whole script if it does not know the hash.
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

// redisError returns the text of an error that a server sent. For any other error it returns "".
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
