package redislease

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// pageSize is the number of keys that List examines in one request to the server. List then reads the records
// under these keys in one request. The number is small because the server renews no lease while it carries
// out such a request.
const pageSize = 100

// List returns the leases whose names begin with prefix, in no particular order. For a record that is not
// valid, List yields an error, and continues with the next record. See [lease.Lister].
//
// List scans every key of the database, page by page, with SCAN, and then reads the keys that belong to
// leases. The keys of other programs make List slower, but it does not block other clients. In a cluster,
// List can miss a lease whose slot is moved to another server while List is running. If the client of the
// Store connects to a single server of a cluster, List returns a permanent error. However, List needs INFO to
// recognize a cluster. If the user lacks the permission for INFO, List returns only the leases on the single
// server.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return engine.List(ctx, prefix, func(yield func(lease.Entry, error) bool) error {
		all, err := s.servers.all(ctx)
		if err != nil {
			return s.describeError("list from", prefix, err)
		}
		if err := s.checkAlone(ctx, all[0]); err != nil {
			return s.describeError("list from", prefix, err)
		}
		seen := map[string]bool{} // SCAN can return a key twice
		for _, server := range all {
			if more, err := s.listServer(ctx, server, prefix, seen, yield); err != nil || !more {
				return err
			}
		}
		return nil
	})
}

// checkAlone returns an error if the Store connects to a single server of a cluster, because List would then
// return only the leases that this server stores.
func (s *Store) checkAlone(ctx context.Context, server *redis.Client) error {
	if _, alone := s.servers.(*single); !alone {
		return nil
	}
	r, err := s.send(ctx, request{server: server, commands: [][]any{{"info", "cluster"}}})
	if err != nil {
		return err
	}
	info, err := r.sent[0].Text()
	switch {
	case err != nil && redisError(err) == "":
		return err // no answer: the Store has a new client now, and this one is closed
	case field(info, "cluster_enabled") == "1":
		return lease.Permanent(errOneOfCluster)
	}
	return nil // the user may not send INFO
}

// listServer yields the leases of one server. The result more is false if yield has returned false, or after
// an error.
func (s *Store) listServer(ctx context.Context, server *redis.Client, prefix string, seen map[string]bool, yield func(lease.Entry, error) bool) (more bool, err error) {
	pattern := globEscape(s.options.Prefix) + ":{*}:" + globEscape(prefix) + "*"
	for cursor := uint64(0); ; {
		keys, next, err := s.scan(ctx, server, cursor, pattern)
		var names []string
		for _, key := range keys {
			if name, ok := s.nameOf(key); ok && strings.HasPrefix(name, prefix) && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
		var entries []entry
		if err == nil && len(names) > 0 {
			entries, err = s.read(ctx, server, names)
		}
		if err != nil {
			return false, s.describeError("list from", prefix, err)
		}
		cursor = next
		for _, e := range entries {
			if e.Name != "" && !yield(e.Entry, e.err) {
				return false, nil
			}
		}
		if cursor == 0 {
			return true, nil
		}
	}
}

func (s *Store) scan(ctx context.Context, server *redis.Client, cursor uint64, pattern string) (keys []string, next uint64, err error) {
	r, err := s.send(ctx, request{server: server, commands: [][]any{{"scan", cursor, "match", pattern, "count", pageSize}}})
	if err != nil {
		return nil, 0, err
	}
	page, err := r.sent[0].Slice()
	if err != nil {
		return nil, 0, err
	}
	if len(page) != 2 {
		return nil, 0, errReply
	}
	text, _ := page[0].(string)
	if next, err = strconv.ParseUint(text, 10, 64); err != nil {
		return nil, 0, errReply
	}
	found, _ := page[1].([]any)
	for _, k := range found {
		key, _ := k.(string)
		keys = append(keys, key)
	}
	return keys, next, nil
}

// An entry contains the two values that List yields at a time, a lease and an error. List skips an entry
// without a name.
type entry struct {
	lease.Entry
	err error
}

// read reads the records of several names in one exchange.
func (s *Store) read(ctx context.Context, server *redis.Client, names []string) ([]entry, error) {
	verb, text := "evalsha", loadScript.hash
	for {
		commands := make([][]any, len(names))
		for i, name := range names {
			keys := s.keys(loadScript, name)
			commands[i] = []any{verb, text, len(keys), keys[0], keys[1], "never", s.keepMicros()}
		}
		r, err := s.send(ctx, request{server: server, commands: commands})
		if err != nil {
			return nil, err
		}
		entries, again := make([]entry, 0, len(names)), false
		for i, name := range names {
			fields, err := r.sent[i].Slice()
			sentBack := redisError(err)
			switch {
			case strings.HasPrefix(sentBack, "NOSCRIPT") && verb == "evalsha":
				again = true
			case strings.HasPrefix(sentBack, "MOVED"), strings.HasPrefix(sentBack, "ASK"):
				// After the SCAN, the slot of the key was moved to another server.
				snap, err := s.Load(ctx, name)
				entries = append(entries, entryOf(name, snap, err))
			case err != nil && !strings.Contains(sentBack, "WRONGTYPE"):
				return nil, loadScript.locate(err, nil)
			case err != nil:
				entries = append(entries, entry{lease.Entry{Name: name}, s.describeError("list", s.Key(name), errors.Join(lease.ErrCorrupt, err))})
			default:
				snap, err := reply(fields).snapshot(name, &s.clock)
				if err != nil {
					err = unreadableError(s.Key(name), err)
				}
				entries = append(entries, entryOf(name, snap, err))
			}
		}
		if !again {
			return entries, nil
		}
		verb, text = "eval", loadScript.source
	}
}

func entryOf(name string, snap lease.Snapshot, err error) entry {
	switch {
	case err != nil:
		return entry{lease.Entry{Name: name}, err}
	case strings.HasPrefix(snap.Version, absentPrefix):
		return entry{} // the record has expired since the SCAN
	}
	return entry{engine.ListEntry(name, snap), nil}
}

func (s *Store) nameOf(key string) (name string, ok bool) {
	_, rest, found := strings.Cut(strings.TrimPrefix(key, s.options.Prefix+":"), ":")
	return rest, found && lease.CheckName(rest) == nil && s.Key(rest) == key
}

var globSpecial = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// globEscape returns a pattern of SCAN that matches only s.
func globEscape(s string) string { return globSpecial.Replace(s) }
