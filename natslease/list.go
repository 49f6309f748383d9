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
	"github.com/fencedlease/lease/engine"
)

// atOnce is the maximum number of leases that List reads at the same time. The gate can lower this number.
const atOnce = 64

// List reads all names and then the leases. List does not use a NATS consumer, because on a server that lags
// behind, a consumer delivers stale values. A consumer can also miss a lease that is renewed often, because a
// consumer delivers keys in the order of their revisions, and each renewal moves the key of the lease to the
// end of that order.
func (e *backend) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return engine.List(ctx, prefix, func(yield func(engine.NamedEntry, error) bool) error {
		if err := e.checkOnce(ctx); err != nil {
			return err
		}
		names, err := e.listNames(ctx, prefix)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(names, atOnce) {
			found := make([]listed, len(some))
			var reading sync.WaitGroup
			for i, name := range some {
				reading.Go(func() { found[i] = e.list(ctx, name) })
			}
			reading.Wait()
			for _, l := range found {
				if l.err != nil && lease.CodeOf(l.err) != lease.ErrCorrupt {
					return l.err
				}
				if !l.absent && !yield(l.NamedEntry, l.err) {
					return nil
				}
			}
		}
		return nil
	})
}

type listed struct {
	engine.NamedEntry
	absent bool
	err    error
}

func (e *backend) list(ctx context.Context, name string) listed {
	l := listed{NamedEntry: engine.NamedEntry{Name: name}}
	l.err = e.gate.Do(ctx, engine.Request{}, func() error {
		return e.readCurrent(ctx, encode(name), func(m message) (err error) {
			if err := e.confirm(ctx, m.key, m.revision); err != nil {
				return err
			}
			if l.absent = m.absent(); !l.absent {
				l.Entry, err = e.entry(m)
			}
			return err
		})
	})
	return l
}

// listNames returns the sorted names that begin with prefix. The result includes every name whose key existed
// before the call.
//
// A server that lags behind the leader can answer the request for the names. To detect this, listNames first
// writes a message, and rejects every answer from a server that has not yet received that message.
func (e *backend) listNames(ctx context.Context, prefix string) ([]string, error) {
	ctx, cancel := e.withTimeout(ctx)
	defer cancel()
	var mark uint64
	if err := e.gate.Do(ctx, engine.Request{}, func() (err error) {
		mark, err = e.publish(ctx, "list", confirmKey, nil)
		return err
	}); err != nil {
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
			return nil, call.failed(err)
		}
		if info.State.LastSeq < mark {
			if err := pause(ctx, stale); err != nil {
				return nil, call.failed(fmt.Errorf("%w, after %d answers that were not current", err, stale+1))
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
