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

// List returns the leases whose names begin with prefix, sorted by name. It asks NATS for the names
// first, and then reads each lease as Load does, some of them at a time: two exchanges for each.
//
// What a lease has left is an upper bound: a Store that sees a lease for the first time counts from
// there. So a lease whose holder is dead is shown as leased until this Store has seen it for as long
// as it lasts. List again after that time to see which leases are renewed.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// atOnce is how many leases a list reads at a time.
const atOnce = 64

// List shows the leases, after their names were read. It uses no consumer: a consumer that lives on
// a server that is behind shows what is stale, and one that reads a bucket in the order of its
// revisions may never come to a lease that is renewed meanwhile.
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

// A listed lease was read for a list.
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

// names returns the names that begin with prefix, in order: all of those that were known when it was
// called.
//
// A server that is behind may answer. So a message is written first, and an answer counts only if
// its stream has come to that.
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
