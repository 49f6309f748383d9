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
	watching, end := context.WithCancel(ctx)
	w := &watch{signals: make(chan struct{}, 1), end: end, silent: time.AfterFunc(maxSilence, end)}
	sub, err := e.nc.Subscribe(inbox, w.receive)
	if err != nil {
		end()
		return nil, call.failed(err)
	}
	context.AfterFunc(watching, func() {
		_ = sub.Unsubscribe() // An error means that the connection is closed, and with it the subscription.
		w.close()
	})
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
		end()
		return nil, call.failed(err)
	}
	return w.signals, nil
}

type watch struct {
	signals  chan struct{}
	end      context.CancelFunc
	silent   *time.Timer // ends the watch when it fires
	received uint64      // number of messages from the stream; only receive uses it

	mu     sync.Mutex
	closed bool // whether signals is closed
}

// The method receive handles a message from the consumer. If the message is a change of the key, the method
// sends a signal. If an earlier message is missing, the method ends the watch.
func (w *watch) receive(m *nats.Msg) {
	w.silent.Reset(maxSilence)
	switch m.Header.Get(statusHeader) {
	case "":
		w.received++
		if meta, err := m.Metadata(); err != nil || meta.Sequence.Consumer != w.received {
			w.end()
		}
		w.signal()
	case heartbeatStatus:
		if sent, err := strconv.ParseUint(m.Header.Get(lastConsumer), 10, 64); err != nil || sent != w.received {
			w.end()
		}
	default: // the consumer was deleted, or moved to another server
		w.end()
	}
}

func (w *watch) signal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	select {
	case w.signals <- struct{}{}:
	default:
	}
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	close(w.signals)
}
