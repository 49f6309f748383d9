package redislease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A Mark is the mark of a resource whose data is in Redis: the newest fencing token that the
// resource was shown, as a string under a key of its own. It is a [fencing.Mark]. In a cluster the
// mark and the data must be in one slot: give their keys the same words in braces, such as
// "{accounts}:mark" and "{accounts}:total".
//
// A holder first calls [fencing.Advance], before it reads anything, and then writes with a [Script],
// which compares the token and writes the data in one step:
//
//	mark := redislease.NewMark(client, "{accounts}:mark")
//	if err := fencing.Advance(ctx, mark, token); err != nil {
//		return err // another holder has a newer token
//	}
//	total, err := client.Get(ctx, "{accounts}:total").Int()
//	...
//	_, err = put.Run(ctx, mark, token, []string{"{accounts}:total"}, total+1)
//
// Do not delete the mark, and do not let it expire: it must last as long as the data.
type Mark struct {
	client redis.Scripter
	key    string
}

// NewMark returns the mark under a key. It makes no request.
func NewMark(client redis.Scripter, key string) Mark { return Mark{client, key} }

// compare begins each script that has a mark: KEYS[1], and ARGV[1] is the token. Tokens sort as the
// strings they are.
const compare = `#!lua
local seen = redis.call('GET', KEYS[1])
if seen and ARGV[1] < seen then return redis.error_reply('` + staleReply + ` ' .. seen) end
if ARGV[1] ~= seen then redis.call('SET', KEYS[1], ARGV[1]) end
`

const staleReply = "STALETOKEN"

var advance = redis.NewScript(compare + "return ARGV[1]")

// Advance raises the mark to a token, unless the mark is newer, and returns the mark. See
// [fencing.Mark].
func (m Mark) Advance(ctx context.Context, tok lease.Token) (lease.Token, error) {
	err := advance.Run(ctx, m.client, []string{m.key}, string(tok)).Err()
	if seen, stale := staleToken(err); stale {
		return seen, nil
	}
	if err != nil {
		return "", fmt.Errorf("redislease: advance the mark %q: %w", m.key, err)
	}
	return tok, nil
}

// A Script is one of Lua that writes guarded data. Its methods may be used by any number of
// goroutines.
type Script struct{ script *redis.Script }

// NewScript makes a Script. Its text sees in KEYS and ARGV what Run is given, and may return what any
// script may. What it has written stays written if it fails half-way: see EVAL in the documentation
// of Redis.
func NewScript(lua string) *Script {
	return &Script{redis.NewScript(compare + "table.remove(KEYS, 1)\ntable.remove(ARGV, 1)\n" + lua)}
}

// Run raises the mark and runs the script in one step. If the mark is newer than the token, the
// script does not run, and the error is a [*fencing.StaleError]. A malformed token is an error with
// the Code [lease.ErrToken]. With any other error it is not known whether the script has run; a
// client whose MaxRetries is not -1 may run it again when a connection breaks.
func (s *Script) Run(ctx context.Context, m Mark, tok lease.Token, keys []string, args ...any) (any, error) {
	if err := tok.Validate(); err != nil {
		return nil, err
	}
	result, err := s.script.Run(ctx, m.client, append([]string{m.key}, keys...), append([]any{string(tok)}, args...)...).Result()
	if seen, stale := staleToken(err); stale {
		return nil, &fencing.StaleError{Shown: tok, Seen: seen}
	}
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("redislease: run a script under the mark %q: %w", m.key, err)
	}
	return result, nil
}

// staleToken returns the mark that refused a token.
func staleToken(err error) (seen lease.Token, stale bool) {
	text, stale := strings.CutPrefix(redisError(err), staleReply+" ")
	return lease.Token(text), stale
}
