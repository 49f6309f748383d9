package redislease

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A listener checks its connection every pingEvery. If nothing arrives on a connection for
// silentFor, the connection counts as lost.
const (
	pingEvery = time.Second
	silentFor = 5 * time.Second
)

var errLost = errors.New("the connection that listens was lost")

// A listener receives the signals of buckets over a connection of its own, and signals the watches.
// A PubSub of go-redis reconnects by itself, and does not report that it has missed signals. So the
// client of a listener can connect only once.
type listener struct {
	client *redis.Client
	pubsub *redis.PubSub
	cancel context.CancelFunc
	tasks  *tasks // of the Store, which waits for the goroutines of the listener

	mu         sync.Mutex
	heard      time.Time
	channel    string                                // one of the subscribed channels
	watched    map[string]map[chan struct{}]struct{} // by name; nil if the connection is lost
	subscribed map[string]chan struct{}              // by channel; closed when the server has confirmed it
	reason     error                                 // why the connection was lost
}

// listen starts a listener for a server. The listener connects when it first subscribes.
func listen(server *redis.Client, t *tasks) *listener {
	o := storeOptions(server.Options())
	dial, dialed := o.Dialer, new(atomic.Bool)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, errLost
		}
		return dial(ctx, network, addr)
	}
	o.DialerRetries, o.MinIdleConns, o.PoolSize = 1, 0, 1
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{client: redis.NewClient(o), cancel: cancel, tasks: t, heard: time.Now(),
		watched: map[string]map[chan struct{}]struct{}{}, subscribed: map[string]chan struct{}{}}
	l.pubsub = l.client.Subscribe(ctx)
	l.tasks.run(func() { l.checkAlive(ctx) })
	return l
}

// subscribe subscribes to a channel, and returns when the server has confirmed the subscription.
// Only one goroutine at a time may call subscribe. Only the first call sends its request under ctx,
// because it may have to wait for a connection. A request that fails loses the connection, and with
// it the watches of other callers. So the end of ctx must not make a later request fail.
func (l *listener) subscribe(ctx context.Context, channel string) error {
	l.mu.Lock()
	confirmed, asked := l.subscribed[channel]
	first := len(l.subscribed) == 0
	if !asked {
		confirmed = make(chan struct{})
		l.subscribed[channel] = confirmed
		l.channel = channel
	}
	lost := l.watched == nil
	l.mu.Unlock()
	if lost {
		return errLost
	}
	if !asked {
		sending := ctx
		if !first {
			sending = context.WithoutCancel(ctx)
		}
		if err := l.pubsub.Subscribe(sending, channel); err != nil {
			l.lose(err)
			return err
		}
		if first {
			l.begin()
		}
	}
	select {
	case <-confirmed:
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.watched == nil {
			return l.reason
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts receive, unless the connection is lost already. After the call of lose no goroutine
// starts.
func (l *listener) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched != nil {
		l.tasks.run(l.receive)
	}
}

// receive forwards the published signals to the watches, until the connection is lost.
func (l *listener) receive() {
	for {
		got, err := l.pubsub.Receive(context.Background())
		if err != nil {
			l.lose(err)
			return
		}
		l.mu.Lock()
		l.heard = time.Now()
		switch m := got.(type) {
		case *redis.Subscription:
			if confirmed := l.subscribed[m.Channel]; confirmed != nil && m.Kind == "subscribe" {
				select {
				case <-confirmed:
				default:
					close(confirmed)
				}
			}
		case *redis.Message:
			for signals := range l.watched[m.Payload] {
				select {
				case signals <- struct{}{}:
				default:
				}
			}
		}
		l.mu.Unlock()
	}
}

// checkAlive checks the connection once a second, and closes a connection on which nothing arrives.
// To check a connection, checkAlive subscribes again to one of its channels. The server answers
// every subscription, so an answer shows that the connection works.
func (l *listener) checkAlive(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		silent, channel := time.Since(l.heard), l.channel
		l.mu.Unlock()
		if channel == "" {
			continue
		}
		if silent > silentFor {
			l.lose(errLost)
			return
		}
		bounded, cancel := context.WithTimeout(ctx, pingEvery)
		err := l.pubsub.Subscribe(bounded, channel)
		cancel()
		if err != nil {
			l.lose(err)
			return
		}
	}
}

// add adds a watch. It returns false if the connection is lost.
func (l *listener) add(name string, signals chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched == nil {
		return false
	}
	if l.watched[name] == nil {
		l.watched[name] = map[chan struct{}]struct{}{}
	}
	l.watched[name][signals] = struct{}{}
	return true
}

// remove closes the channel of a watch if it is still open.
func (l *listener) remove(name string, signals chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	watches := l.watched[name]
	if _, ok := watches[signals]; !ok {
		return
	}
	close(signals)
	delete(watches, signals)
	if len(watches) == 0 {
		delete(l.watched, name)
	}
}

// lose closes the connection and the channels of all watches.
func (l *listener) lose(reason error) {
	l.mu.Lock()
	if l.watched == nil {
		l.mu.Unlock()
		return
	}
	l.reason = reason
	for _, watches := range l.watched {
		for signals := range watches {
			close(signals)
		}
	}
	l.watched = nil
	for _, confirmed := range l.subscribed {
		select {
		case <-confirmed:
		default:
			close(confirmed)
		}
	}
	l.mu.Unlock()
	l.cancel()
	_ = l.pubsub.Close()
	_ = l.client.Close()
}
