package redislease

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/engine"
	"github.com/fencedlease/lease/internal/tasks"
)

// A listener checks its connection at intervals of the length pingEvery. If no data has arrived for longer
// than the time silentFor, the listener closes its connection.
const (
	pingEvery = time.Second
	silentFor = 5 * time.Second
)

var errLost = errors.New("the connection that listens was lost")

// A listener receives the published signals over its own connection, and forwards them to the watches. The
// client of a listener can connect only once. Otherwise, after the loss of a connection, the redis.PubSub
// would connect again without an error, although signals may have been lost meanwhile.
type listener struct {
	client *redis.Client
	pubsub *redis.PubSub
	ctx    context.Context // ends when the connection is lost
	end    context.CancelFunc
	tasks  *tasks.Group // the goroutines of the Store, including those of the listener
	check  func()       // called once a second

	watches engine.Watches[struct{}] // closed when the connection is lost

	mu         sync.Mutex
	heard      time.Time // when the last data arrived, or when begin was called
	subscribed map[string]subscription
}

// A subscription ends when the server has confirmed it, or when the connection is lost.
type subscription struct {
	context.Context
	confirm context.CancelFunc
}

// listen returns a listener for a server. The listener connects when it first subscribes to a channel.
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
	l := &listener{client: redis.NewClient(o), tasks: t, check: check, subscribed: map[string]subscription{}}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.pubsub = l.client.Subscribe(context.Background())
	return l
}

// The method watch begins to watch a lease, and subscribes to the channel of the lease's bucket. The watch
// ends when ctx is done. If the method returns an error before ctx is done, the connection of the listener is
// lost.
func (l *listener) watch(ctx context.Context, name, channel string) (<-chan struct{}, error) {
	watching, cancel := context.WithCancel(ctx)
	signals, err := l.watches.Add(watching, name, struct{}{})
	if err == nil {
		err = l.subscribe(ctx, channel)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	context.AfterFunc(ctx, cancel)
	return signals, nil
}

// subscribe subscribes to a channel, and returns when the server has confirmed the subscription. Only one
// goroutine at a time may call subscribe. If the request fails or is canceled, subscribe closes the
// connection, which also ends the watches of other callers. The end of ctx therefore does not cancel a
// request for a further channel. The end of ctx cancels only the first request, because this request must
// also open the connection, which can take long, and no other caller has a watch yet.
func (l *listener) subscribe(ctx context.Context, channel string) error {
	l.mu.Lock()
	s, asked := l.subscribed[channel]
	first := len(l.subscribed) == 0
	if !asked {
		s.Context, s.confirm = context.WithCancel(l.ctx)
		l.subscribed[channel] = s
	}
	l.mu.Unlock()
	if err := l.watches.Err(); err != nil {
		return err
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
	case <-s.Done():
		return l.watches.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The method begin starts the goroutines of the listener. The caller must already have opened the connection
// by subscribing to the given channel. If the connection is already lost, the method starts no goroutine. For
// example, [Store.Close] calls [listener.lose] and then waits for all goroutines, so none may start after
// that call.
func (l *listener) begin(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watches.Err() == nil {
		l.heard = time.Now()
		l.tasks.Start(l.receive)()
		l.tasks.Start(func() { l.checkAlive(channel) })()
	}
}

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
			if s, asked := l.subscribed[m.Channel]; asked && m.Kind == "subscribe" {
				s.confirm()
			}
		case *redis.Message:
			l.watches.Signal(m.Payload)
		}
		l.mu.Unlock()
	}
}

// checkAlive closes the connection if nothing arrives over it. Once a second, checkAlive subscribes to the
// same channel again, because the server answers every subscription.
func (l *listener) checkAlive(channel string) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
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

// lose closes the connection and the channels of all watches.
func (l *listener) lose(reason error) {
	l.mu.Lock()
	lost := l.watches.Close(reason)
	l.mu.Unlock()
	if lost {
		l.end()
		_ = l.pubsub.Close()
		_ = l.client.Close()
	}
}
