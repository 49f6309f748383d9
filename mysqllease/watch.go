package mysqllease

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// pollMost is the largest number of names in one query.
const pollMost = 1000

// Watch implements [lease.Watcher]. All watches of a Store share the queries of each [Options.PollInterval].
// For example, one query is enough for 1,000 watched names, and three queries are enough for 3,000 names. A
// change through this Store is signalled at once. Other changes are signalled at most one PollInterval after
// their commit, even if the process that made the change has crashed. While the server does not answer,
// signals are late.
func (s *Store) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	c, err := s.poller.Watch(ctx, name)
	if err != nil && lease.CodeOf(err) != lease.ErrName {
		err = describeError("watch", name, err)
	}
	return c, err
}

// For each name, the method poll reads the time of the last change that a watch must signal. A read-only server
// refuses the query, because it may be an old primary, at which leases no longer change.
func (s *Store) poll(ctx context.Context, names []string, seen func(name, version string)) error {
	for some := range slices.Chunk(names, pollMost) {
		found := map[string]string{}
		args := make([]any, len(some))
		for i, name := range some {
			args[i] = []byte(name)
		}
		text := "select name, signalled from (select lease_writable()) w, lease_row where name in (?" + strings.Repeat(", ?", len(some)-1) + ")"
		err := s.do(ctx, engine.Request{}, func(c *sql.Conn) error {
			return query(ctx, c, text, args, func(scan scanner) error {
				var name, at string
				err := scan(&name, &at)
				found[name] = at
				return err
			})
		})
		if err != nil {
			return err
		}
		for _, name := range some {
			seen(name, found[name])
		}
	}
	return nil
}
