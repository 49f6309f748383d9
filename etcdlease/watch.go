package etcdlease

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// confirmTimeout is the longest time that Watch waits for etcd to confirm the watch.
const confirmTimeout = 5 * time.Second

// Watch returns once etcd has confirmed the watch. After the confirmation, the client receives
// every later revision of the key, even if it has to reconnect.
func (e *engine) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key := e.prefix + name
	watching, cancel := context.WithCancel(ctx)
	// A member of etcd that has lost its leader receives no new revisions. WithRequireLeader makes
	// such a member cancel the watch.
	events := e.client.Watch(clientv3.WithRequireLeader(watching), key, clientv3.WithCreatedNotify())
	timer := time.NewTimer(confirmTimeout)
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case first, open := <-events:
		if err = first.Err(); err == nil && !open {
			err = ctx.Err()
		}
	case <-timer.C:
	}
	if err != nil {
		cancel()
		return nil, e.explain("watch", key, err)
	}
	signals := make(chan struct{}, 1)
	go func() {
		defer cancel()
		defer close(signals)
		for res := range events {
			if res.Err() != nil {
				return
			}
			if len(res.Events) > 0 {
				select {
				case signals <- struct{}{}:
				default:
				}
			}
		}
	}()
	return signals, nil
}
