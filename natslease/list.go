package natslease

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// List returns the leases whose names begin with prefix, sorted by name. List first requests the
// names from NATS. Then List reads the leases, up to 64 at the same time, and confirms each read as
// Load does. Each lease takes two exchanges with NATS.
//
// The remaining time of a listed lease is an upper bound, because a Store starts to count when it
// sees a lease for the first time. List may therefore report a lease as leased although its holder
// is dead. List reports a lease as expired if it has not been renewed for its whole duration since
// this Store first saw it. To find out which leases are still renewed, wait for the longest
// duration and call List again.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// atOnce is the number of leases that a list reads at the same time.
const atOnce = 64

// List reads all names and then yields their leases. It uses no consumer, because a consumer on a
// server that lags behind delivers stale values. A consumer also delivers keys in the order of
// their revisions, so it may never deliver a lease that is renewed all the time.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		names, err := e.listNames(ctx, prefix)
		if err != nil {
			yield(observe.NamedEntry{}, err)
			return
		}
		for some := range slices.Chunk(names, atOnce) {
			found := make([]listed, len(some))
			var reading sync.WaitGroup
			for i, name := range some {
				reading.Go(func() { found[i] = e.list(ctx, name) })
			}
			reading.Wait()
			for i, name := range some {
				l := found[i]
				switch {
				case l.absent:
				case l.err == nil, lease.CodeOf(l.err) == lease.ErrCorrupt:
					if !yield(observe.NamedEntry{Name: name, Entry: l.Entry}, l.err) {
						return
					}
				default:
					yield(observe.NamedEntry{}, l.err)
					return
				}
			}
		}
	}
}

// A listed is the result of reading one lease for a list.
type listed struct {
	observe.Entry
	absent bool
	err    error
}

// list reads one lease.
func (e *engine) list(ctx context.Context, name string) (l listed) {
	l.err = e.readCurrent(ctx, encode(name), func(m message) (err error) {
		if err := e.confirm(ctx, m.key, m.revision); err != nil {
			return err
		}
		if l.absent = m.absent(); !l.absent {
			l.Entry, err = e.entry(m)
		}
		return err
	})
	return l
}

// listNames returns the sorted names of all keys that begin with prefix and that existed when
// listNames was called.
//
// The request for the names may be answered by a server that lags behind. Therefore listNames first
// writes a message, and rejects every answer from a server that has not received that message yet.
func (e *engine) listNames(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	mark, err := e.publish(ctx, "list", confirmKey, nil)
	if err != nil {
		return nil, err
	}
	for stale := 0; ; stale++ {
		call := e.call("list", "", e.api+"STREAM.INFO."+e.stream)
		info, err := sendRepeatedly(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
			s, err := e.js.Stream(ctx, e.stream)
			if err != nil {
				return nil, err
			}
			return s.Info(ctx, jetstream.WithSubjectFilter(e.subject(">")))
		})
		if err != nil {
			return nil, call.explain(err)
		}
		if info.State.LastSeq < mark {
			if err := pause(ctx, stale); err != nil {
				return nil, call.explain(fmt.Errorf("%w, after %d answers that were not current", err, stale+1))
			}
			continue
		}
		var names []string
		for subject := range info.State.Subjects {
			if name, ok := decode(strings.TrimPrefix(subject, e.subject(""))); ok && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	}
}
