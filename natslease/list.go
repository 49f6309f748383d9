package natslease

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// List returns the leases whose names begin with prefix, sorted by name. It reads the whole bucket,
// through a consumer, before it shows the first lease, and keeps what it read in memory.
//
// What a lease has left is an upper bound: a Store that sees a lease for the first time counts from
// there. So a lease whose holder is dead is shown as leased until this Store has seen it for as long
// as it lasts. List again after that time to see which leases are renewed.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// List reads the bucket, and shows the leases in it.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		messages, err := e.readAll(ctx)
		if err != nil {
			yield(observe.NamedEntry{}, err)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(messages)) {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(observe.NamedEntry{}, err)
				return
			}
			found, err := e.entry(messages[name])
			if !yield(observe.NamedEntry{Name: name, Entry: found}, err) {
				return
			}
		}
	}
}

// page is how many messages a list reads at once.
const page = 500

// readAll returns the last message under each name.
//
// A consumer may live on a server that is behind. So a message is written first, and the list goes
// on until the consumer has come past it: every write that was acknowledged before the list is
// before that message. A lease that is renewed meanwhile moves to the end of the stream, so the list
// goes on until the consumer has nothing more to send.
func (e *engine) readAll(ctx context.Context) (map[string]message, error) {
	ctx, cancel := e.bounded(ctx)
	defer cancel() // of the consumer's last request, too
	mark, err := e.publish(ctx, "list: write", confirmKey, nil)
	if err != nil {
		return nil, err
	}
	call := e.call("list", "", e.api+"CONSUMER.CREATE."+e.stream+".")
	consumer, err := e.js.CreateConsumer(ctx, e.stream, jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: abandoned,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return nil, call.explain(err)
	}
	call = e.call("list", "", e.api+"CONSUMER.MSG.NEXT."+e.stream+".")
	messages := map[string]message{}
	for received := uint64(0); ; {
		batch, err := consumer.Fetch(page, jetstream.FetchContext(ctx))
		if err != nil {
			return nil, call.explain(err)
		}
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return nil, call.explain(err)
			}
			if received++; meta.Sequence.Consumer != received {
				return nil, call.explain(errors.New("a message is missing"))
			}
			key := strings.TrimPrefix(m.Subject(), e.subject(""))
			kept := message{key, meta.Sequence.Stream, m.Headers(), m.Data()}
			if name, ok := decode(key); ok && kept.absent() {
				delete(messages, name)
			} else if ok {
				messages[name] = kept
			}
			if meta.Sequence.Stream >= mark && meta.NumPending == 0 {
				return messages, nil
			}
		}
		if err := batch.Error(); err != nil {
			return nil, call.explain(fmt.Errorf("after %d messages: %w", received, err))
		}
	}
}
