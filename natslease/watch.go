package natslease

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// confirmation bounds how long NATS may take to begin a watch.
	confirmation = 5 * time.Second

	// heartbeat is how often a consumer sends a sign of life.
	heartbeat = 2 * time.Second

	// silence is how long a consumer may send nothing until its watch is lost.
	silence = 5 * time.Second

	// abandoned is how long a server keeps a consumer that nobody listens to.
	abandoned = 10 * time.Second
)

// Watch returns once NATS has made a consumer for the key. The consumer lives in the memory of one
// server, and the watch is lost with it.
func (e *engine) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key := encode(name)
	call := e.call("watch", key, e.api+"CONSUMER.CREATE."+e.stream+".")
	inbox := e.nc.NewInbox()
	w := &watch{signals: make(chan struct{}, 1)}
	var err error
	if w.sub, err = e.nc.Subscribe(inbox, w.receive); err != nil {
		return nil, call.explain(err)
	}
	w.start(ctx)
	creating, cancel := context.WithTimeout(ctx, confirmation)
	defer cancel()
	_, err = e.js.CreatePushConsumer(creating, e.stream, jetstream.ConsumerConfig{
		DeliverSubject:    inbox,
		DeliverPolicy:     jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     e.subject(key),
		HeadersOnly:       true,
		IdleHeartbeat:     heartbeat,
		InactiveThreshold: abandoned,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		w.end()
		return nil, call.explain(err)
	}
	return w.signals, nil
}

// A watch is a subscription to what a consumer sends.
type watch struct {
	sub     *nats.Subscription
	signals chan struct{}

	mu       sync.Mutex
	received uint64      // messages of the stream
	silent   *time.Timer // ends the watch
	stop     func() bool // its context no longer ends it
	ended    bool
}

func (w *watch) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = time.AfterFunc(silence, w.end)
	w.stop = context.AfterFunc(ctx, w.end)
}

// end ends the watch.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.silent.Stop()
	w.stop()
	_ = w.sub.Unsubscribe() // fails if the connection is closed: then there is none
	close(w.signals)
}

// receive takes what the consumer sends. The watch is lost if something that it sent is missing.
func (w *watch) receive(m *nats.Msg) {
	if !w.take(m) {
		w.end()
	}
}

// take reports whether nothing is missing before m.
func (w *watch) take(m *nats.Msg) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return true
	}
	w.silent.Reset(silence)
	switch status := m.Header.Get(statusHeader); status {
	case "":
		w.received++
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != w.received {
			return false
		}
		select {
		case w.signals <- struct{}{}:
		default:
		}
		return true
	case heartbeatStatus:
		sent, err := strconv.ParseUint(m.Header.Get(lastConsumer), 10, 64)
		return err == nil && sent == w.received
	default: // the consumer was deleted, or has moved
		return false
	}
}
