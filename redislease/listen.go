package redislease

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/tasks"
)

// A listener checks its connection every pingEvery, and counts it as lost after silentFor without data.
const (
	pingEvery = time.Second
	silentFor = 5 * time.Second
)

var errLost = errors.New("the connection that listens was lost")

// A listener receives the published signals over a connection of its own, and forwards them to the
// watches. It uses a client that can connect only once, because a redis.PubSub reconnects by itself and
// does not report whether signals were lost before it reconnected.
type listener struct {
	client *redis.Client
	pubsub *redis.PubSub
	ended  chan struct{} // closed when the connection is lost
	tasks  *tasks.Group  // the tasks of the Store, among them the goroutines of the listener
	check  func()        // called once a second

	mu         sync.Mutex
	heard      time.Time                             // when the last data arrived, or when begin was called
	watched    map[string]map[chan struct{}]struct{} // by name; nil if the connection is lost
	subscribed map[string]chan struct{}              // by channel; closed when the server has confirmed the subscription
	reason     error                                 // why the connection was lost
}

// listen returns a listener for a server. It connects when it first subscribes.
func listen(server *redis.Client, t *tasks.Group, check func()) *listener {
	o := storeOptions(server.Options())
	dial, dialed := o.Dialer, new(atomic.Bool)
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, errLost
		}
		return dial(ctx, network, addr)
	}
	o.DialerRetries, o.MinIdleConns, o.PoolSize = 1, 0, 1
	l := &listener{client: redis.NewClient(o), ended: make(chan struct{}), tasks: t, check: check,
		watched: map[string]map[chan struct{}]struct{}{}, subscribed: map[string]chan struct{}{}}
	l.pubsub = l.client.Subscribe(context.Background())
	return l
}

// watch adds a watch of a name, which ends when ctx is done, and subscribes to the channel of the name's
// bucket. If it returns an error before ctx is done, the connection of the listener is lost.
func (l *listener) watch(ctx context.Context, name, channel string) (<-chan struct{}, error) {
	signals := make(chan struct{}, 1)
	if !l.add(name, signals) {
		return nil, errLost
	}
	if err := l.subscribe(ctx, channel); err != nil {
		l.remove(name, signals)
		return nil, err
	}
	context.AfterFunc(ctx, func() { l.remove(name, signals) })
	return signals, nil
}

// subscribe subscribes to a channel, and returns when the server has confirmed it. Only one goroutine at
// a time may call it. If the request fails or is canceled, it closes the connection, which also ends the
// watches of other callers. The first call also opens the connection, which can take long, so it cancels
// its request when ctx is done. Later calls never cancel theirs.
func (l *listener) subscribe(ctx context.Context, channel string) error {
	l.mu.Lock()
	confirmed, asked := l.subscribed[channel]
	first := len(l.subscribed) == 0
	if !asked {
		confirmed = make(chan struct{})
		l.subscribed[channel] = confirmed
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
			l.begin(channel)
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

// begin starts the goroutines of the listener. The caller must have opened the connection and subscribed
// to the channel. If the connection is already lost, begin does nothing, so that [Store.Close] can call
// [listener.lose] and then wait until all goroutines have ended.
func (l *listener) begin(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched != nil {
		l.heard = time.Now()
		l.tasks.Start(l.receive)()
		l.tasks.Start(func() { l.checkAlive(channel) })()
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

// checkAlive checks the connection once a second, and closes it if nothing arrives. For the check, it
// subscribes to the same channel again, because the server answers every subscription.
func (l *listener) checkAlive(channel string) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-tick.C:
		}
		l.check()
		l.mu.Lock()
		silent := time.Since(l.heard)
		l.mu.Unlock()
		if silent > silentFor {
			l.lose(errLost)
			return
		}
		bounded, cancel := context.WithTimeout(context.Background(), pingEvery)
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
	close(l.ended)
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
	_ = l.pubsub.Close()
	_ = l.client.Close()
}
