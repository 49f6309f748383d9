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
		err := s.list(ctx, prefix, yield)
		if err != nil {
			err = s.describeError("list from", prefix, err)
		}
		return err
	})
}

func (s *Store) list(ctx context.Context, prefix string, yield func(lease.Entry, error) bool) error {
	all, err := s.servers.all(ctx)
	if err != nil {
		return err
	}
	if err := s.checkAlone(ctx, all[0]); err != nil {
		return err
	}
	pattern := globEscape(s.options.Prefix) + ":{*}:" + globEscape(prefix) + "*"
	seen := map[string]bool{} // SCAN can return a key twice
	for _, server := range all {
		for cursor, last := uint64(0), false; !last; last = cursor == 0 {
			var keys []any
			if keys, cursor, err = s.scan(ctx, server, cursor, pattern); err != nil {
				return err
			}
			var names []string
			for _, key := range keys {
				if name, ok := s.nameOf(key); ok && strings.HasPrefix(name, prefix) && !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
			page, err := s.read(ctx, server, names)
			if err != nil {
				return err
			}
			for _, l := range page {
				if !yield(l.Entry, l.Err) {
					return nil
				}
			}
		}
	}
	return nil
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

func (s *Store) scan(ctx context.Context, server *redis.Client, cursor uint64, pattern string) (keys []any, next uint64, err error) {
	r, err := s.send(ctx, request{server: server, commands: [][]any{{"scan", cursor, "match", pattern, "count", pageSize}}})
	if err != nil {
		return nil, 0, err
	}
	page, err := r.sent[0].Slice()
	if err != nil {
		return nil, 0, err
	}
	next, err = strconv.ParseUint(reply(page).text(0), 10, 64)
	if err != nil || len(page) != 2 {
		return nil, 0, errReply
	}
	keys, _ = page[1].([]any)
	return keys, next, nil
}

// read reads the records of several names in one exchange.
func (s *Store) read(ctx context.Context, server *redis.Client, names []string) (page []engine.Listed, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	calls := make([][]any, len(names))
	for i, name := range names {
		calls[i] = s.call(loadScript, name, "never", s.keepMicros())
	}
	r, err := s.sendScript(ctx, request{server: server}, loadScript, calls...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		var snap lease.Snapshot
		fields, err := r.sent[i].Slice()
		switch text := redisError(err); {
		case err == nil:
			if snap, err = reply(fields).snapshot(name, &s.clock); err != nil {
				err = unreadableError(s.Key(name), err)
			}
		case strings.HasPrefix(text, "MOVED"), strings.HasPrefix(text, "ASK"):
			snap, err = s.Load(ctx, name) // after the SCAN, the slot of the key was moved to another server
		case strings.Contains(text, "WRONGTYPE"):
			err = s.describeError("list", s.Key(name), errors.Join(lease.ErrCorrupt, err))
		default:
			return nil, loadScript.locate(err, nil)
		}
		if err != nil || !strings.HasPrefix(snap.Version, absentPrefix) { // otherwise, the record has expired since the SCAN
			page = append(page, engine.Listed{Entry: engine.ListEntry(name, snap), Err: err})
		}
	}
	return page, nil
}

func (s *Store) nameOf(of any) (name string, ok bool) {
	key, _ := of.(string)
	_, rest, found := strings.Cut(strings.TrimPrefix(key, s.options.Prefix+":"), ":")
	return rest, found && lease.CheckName(rest) == nil && s.Key(rest) == key
}

var globSpecial = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`)

// globEscape returns a pattern of SCAN that matches only s.
func globEscape(s string) string { return globSpecial.Replace(s) }
