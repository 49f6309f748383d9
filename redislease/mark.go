package redislease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/fencing"
)

// A Mark stores the newest fencing token that a resource in Redis has seen, as a string under a key of its
// own. A Mark implements [fencing.Mark]. In a cluster, the mark and the data must be in one slot, so give
// both keys the same text in braces, such as "{accounts}:mark" and "{accounts}:total".
//
// A holder calls [fencing.Advance] before it reads the data, and then writes the data with a [Script], which
// compares the token and writes in one step:
//
//	mark := redislease.NewMark(client, "{accounts}:mark")
//	if err := fencing.Advance(ctx, mark, token); err != nil {
//		return err // another holder has a newer token
//	}
//	total, err := client.Get(ctx, "{accounts}:total").Int()
//	...
//	_, err = put.Run(ctx, mark, token, []string{"{accounts}:total"}, total+1)
//
// The mark must exist for as long as the data, so do not delete it or let it expire.
type Mark struct {
	client redis.Scripter
	key    string
}

// NewMark returns the mark under the given key. NewMark sends no request, and panics if client is nil. If the
// key is empty, as in the zero Mark, each use of the mark returns a [*lease.FieldError] with the Code
// [lease.ErrOption], and sends no request.
func NewMark(client redis.Scripter, key string) Mark {
	if client == nil {
		panic("redislease: NewMark: client must not be nil")
	}
	return Mark{client, key}
}

func (m Mark) check() error {
	if m.key == "" {
		return &lease.FieldError{Field: "NewMark.key", Value: `""`, Bound: "must not be empty", Code: lease.ErrOption}
	}
	return nil
}

// compare is the beginning of every script that uses a mark. KEYS[1] is the key of the mark, and ARGV[1] is
// the token. The script can compare two tokens as strings, because all valid tokens have the same number of
// digits.
const compare = `#!lua
local seen = redis.call('GET', KEYS[1])
if seen and ARGV[1] < seen then return redis.error_reply('` + staleReply + ` ' .. seen) end
if ARGV[1] ~= seen then redis.call('SET', KEYS[1], ARGV[1]) end
`

const staleReply = "STALETOKEN"

var advance = redis.NewScript(compare + "return ARGV[1]")

// String returns the key of the mark, for errors.
func (m Mark) String() string { return fmt.Sprintf("mark %q", m.key) }

// Advance raises the mark to tok if tok is newer, and returns the resulting mark. If the mark is not a valid
// token, Advance compares it with tok as a string, and returns an error with the Code [lease.ErrCorrupt] if
// the mark is greater. See [fencing.Mark].
func (m Mark) Advance(ctx context.Context, tok lease.Token) (lease.Token, error) {
	if err := m.check(); err != nil {
		return "", err
	}
	_, err := m.run(ctx, advance, []string{m.key}, string(tok))
	newer, err := m.newer("advance", err)
	if err != nil {
		return "", err
	}
	return cmp.Or(newer, tok), nil
}

// A Script is a Lua script that writes guarded data. A Script is safe for use by several goroutines at once.
type Script struct{ script *redis.Script }

// NewScript returns a Script with the given Lua text, which gets the arguments of [Script.Run] in KEYS and
// ARGV, and can return any value that a Redis script can return. If the script fails half-way, Redis does not
// undo the writes before the failure: see EVAL in the documentation of Redis.
func NewScript(lua string) *Script {
	return &Script{redis.NewScript(compare + "table.remove(KEYS, 1)\ntable.remove(ARGV, 1)\n" + lua)}
}

// Run raises the mark to tok and runs the script, in one step. Run does not run the script in the following
// cases:
//
//   - If the mark is newer than tok, Run returns a [*fencing.StaleError].
//   - If tok is malformed, Run returns an error with the Code [lease.ErrToken].
//   - If the mark is malformed and greater than tok in string order, Run returns an error with the Code
//     [lease.ErrCorrupt].
//
// After any other error, it is unknown whether the script has run. If ctx ends, Run returns at once, and the
// script can still run later, unless a newer token has raised the mark by then. If a connection breaks, the Redis client
// can run the script a second time, unless MaxRetries of the client is -1.
func (s *Script) Run(ctx context.Context, m Mark, tok lease.Token, keys []string, args ...any) (any, error) {
	if err := tok.Validate(); err != nil {
		return nil, fmt.Errorf("redislease: run a script under the mark %q: %w", m.key, err)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	result, err := m.run(ctx, s.script, append([]string{m.key}, keys...), append([]any{string(tok)}, args...)...)
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	newer, err := m.newer("run a script under", err)
	if err != nil {
		return nil, err
	}
	if newer != "" {
		return nil, &fencing.StaleError{Shown: tok, Seen: newer}
	}
	return result, nil
}

// The method run runs a script. It returns when ctx ends, although most clients then go on waiting for the
// server.
func (m Mark) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	return engine.Call(ctx, func() (any, error) { return script.Run(ctx, m.client, keys, args...).Result() })
}

// The method newer returns the mark if a script refused a token because the mark is greater. The parameter
// err is the error of the script. Its text contains the mark if the script refused the token. After any other
// error, the method returns an error that wraps err. If err is nil, the method returns the empty token. If
// the mark is malformed, the method returns an error that wraps a [*lease.FieldError]. Every error of the
// method names the key of the mark, and says what has failed. For example, the parameter verb is "advance" if
// a call of Advance has failed.
func (m Mark) newer(verb string, err error) (lease.Token, error) {
	if err == nil {
		return "", nil
	}
	text, found := strings.CutPrefix(redisError(err), staleReply+" ")
	if !found {
		return "", fmt.Errorf("redislease: %s the mark %q: %w", verb, m.key, err)
	}
	mark := lease.Token(text)
	if mark.Validate() != nil {
		return "", fmt.Errorf("redislease: %s the mark %q: %w; set this key to the newest token of the lease", verb, m.key, &lease.FieldError{
			Field: "Mark", Value: fmt.Sprintf("%.80q", text), Bound: "must be a fencing token of 20 digits", Code: lease.ErrCorrupt,
		})
	}
	return mark, nil
}
