package redislease

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
)

// While a Store is in use, CONFIG SET can change the eviction policy of a server. The Store therefore checks
// the policy again when the last check is older than checkEvery.
const checkEvery = 2 * time.Second

// checkNew checks the eviction policy on each new connection, because the policy of a promoted replica can
// differ from that of the old primary. checkNew also warns, once in the life of the Store, if the server has
// no append-only file. The error of checkNew has one more wrapper, because go-redis removes it with
// errors.Unwrap.
func (s *Store) checkNew(ctx context.Context, conn *redis.Conn) error {
	if s.options.AssumeNoEviction {
		return nil
	}
	info, err := conn.Info(ctx, "memory", "persistence").Result()
	if err = checkInfo(info, err); err != nil {
		return fmt.Errorf("%w", err)
	}
	s.warnIfForgetful(info)
	return nil
}

// warnIfForgetful warns if the answer to INFO persistence shows that the server has no append-only file.
// warnIfForgetful ignores the answer of a server that is loading its data after a restart, because such a
// server reports that it has no append-only file whatever its settings are.
func (s *Store) warnIfForgetful(info string) {
	if field(info, "aof_enabled") == "0" && field(info, "loading") == "0" && !s.warned.Swap(true) {
		slog.Warn("lease: the Redis server keeps no append-only file, so it forgets held leases and the newest tokens when it crashes: set appendonly yes and appendfsync always")
	}
}

// checkInfo returns an error if the answer to INFO memory shows that the server may evict keys.
func checkInfo(info string, err error) error {
	switch policy := field(info, "maxmemory_policy"); {
	case strings.HasPrefix(redisError(err), "NOPERM"):
		return lease.Permanent(fmt.Errorf("the eviction policy of the server is not known: %w; permit +info, or see to it that maxmemory-policy is noeviction and set Options.AssumeNoEviction", err))
	case err != nil:
		return err
	case policy != "" && policy != "noeviction":
		return lease.Permanent(fmt.Errorf("the server has the maxmemory-policy %s, which may drop leases and the order of their tokens: set it to noeviction", policy))
	}
	return nil
}

func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *Store) checkDue(l *line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.options.AssumeNoEviction || time.Since(l.checked) < checkEvery {
		return false
	}
	l.checked = time.Now()
	return true
}

// checked returns an error if the answer to INFO shows that the server may evict keys. After such an error,
// the next request checks the policy again. If info is nil, checked returns nil.
func (s *Store) checked(l *line, info *redis.Cmd) error {
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
		l.checked = time.Time{}
		s.mu.Unlock()
	}
	return err
}
