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
// names from NATS. Then List reads up to 64 leases at the same time, each as Load does. Each lease
// takes two exchanges with NATS.
//
// The remaining time of a listed lease is an upper bound, because a Store starts to count when it
// sees a lease for the first time. List may therefore report a lease as leased although its holder
// is dead. List reports such a lease as expired once a whole duration has passed since this Store
// first saw the lease. To find out which leases are renewed, call List a second time after the
// longest duration.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// atOnce is the number of leases that a list reads at the same time.
const atOnce = 64

// List reads all names and then yields their leases. It uses no consumer. A consumer on a server
// that lags behind delivers stale values. A consumer also delivers keys in the order of their
// revisions, so it may never reach a lease that is renewed all the time.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		names, err := e.names(ctx, prefix)
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
	l.err = e.current(ctx, encode(name), func(m message) (err error) {
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

// names returns all names that begin with prefix and that existed when names was called, in sorted
// order.
//
// A server that lags behind may answer the request for the names. Therefore names first writes a
// message. names rejects every answer from a server that has not received that message yet.
func (e *engine) names(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := e.bounded(ctx)
	defer cancel()
	mark, err := e.publish(ctx, "list", confirmKey, nil)
	if err != nil {
		return nil, err
	}
	for stale := 0; ; stale++ {
		call := e.call("list", "", e.api+"STREAM.INFO."+e.stream)
		info, err := again(ctx, func(ctx context.Context) (*jetstream.StreamInfo, error) {
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
