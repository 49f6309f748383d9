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
	// createTimeout is how long Watch waits until NATS has created a consumer.
	createTimeout = 5 * time.Second

	// heartbeat is the interval at which an idle consumer sends a heartbeat.
	heartbeat = 2 * time.Second

	// maxSilence is the longest time that a watch stays open without a message from its consumer.
	maxSilence = 5 * time.Second

	// keepUnused is how long a server keeps a consumer that has no subscriber.
	keepUnused = 10 * time.Second
)

// A consumer also sends its own messages, such as heartbeats, which have these headers.
const (
	statusHeader    = "Status"
	heartbeatStatus = "100"                // the status of a heartbeat
	lastConsumer    = "Nats-Last-Consumer" // in a heartbeat: the number of messages that the consumer has sent
)

// Watch creates a consumer for the key, and returns when NATS has confirmed the consumer. The consumer exists
// in the memory of one server, so the watch is lost if that server fails.
func (e *backend) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key := encode(name)
	if err := e.checkOnce(ctx); err != nil {
		return nil, err
	}
	call := e.call("watch", key, e.api+"CONSUMER.CREATE."+e.stream+".")
	inbox := e.nc.NewInbox()
	w := &watch{signals: make(chan struct{}, 1)}
	var err error
	if w.sub, err = e.nc.Subscribe(inbox, w.receive); err != nil {
		return nil, call.failed(err)
	}
	w.start(ctx)
	creating, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	_, err = e.js.CreatePushConsumer(creating, e.stream, jetstream.ConsumerConfig{
		DeliverSubject:    inbox,
		DeliverPolicy:     jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		FilterSubject:     e.subject(key),
		HeadersOnly:       true,
		IdleHeartbeat:     heartbeat,
		InactiveThreshold: keepUnused,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		w.end()
		return nil, call.failed(err)
	}
	return w.signals, nil
}

type watch struct {
	sub     *nats.Subscription
	signals chan struct{}

	mu       sync.Mutex
	received uint64      // number of messages from the stream
	silent   *time.Timer // ends the watch when it fires
	stop     func() bool // stops the AfterFunc of the context
	ended    bool
}

func (w *watch) start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = time.AfterFunc(maxSilence, w.end)
	w.stop = context.AfterFunc(ctx, w.end)
}

// The method end unsubscribes and closes the channel. Only the first call of end has an effect.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.silent.Stop()
	w.stop()
	_ = w.sub.Unsubscribe() // An error means that the connection is closed, and with it the subscription.
	close(w.signals)
}

// The method receive handles a message from the consumer. If an earlier message is missing, the method closes
// the watch.
func (w *watch) receive(m *nats.Msg) {
	if !w.take(m) {
		w.end()
	}
}

// The method take handles the message m. If m is a change of the key, the method counts the message and sends
// a signal. The result is false if an earlier message is missing, or if the consumer was deleted or moved to
// another server.
func (w *watch) take(m *nats.Msg) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return true
	}
	w.silent.Reset(maxSilence)
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
	default: // the consumer was deleted, or moved to another server
		return false
	}
}
