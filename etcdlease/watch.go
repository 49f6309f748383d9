package etcdlease

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// confirmation bounds how long etcd may take to confirm a watch.
const confirmation = 5 * time.Second

// Watch returns once etcd has confirmed the watch. From then on the client follows the
// revisions of the key, over as many connections as it takes.
func (e *engine) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key := e.prefix + name
	watching, cancel := context.WithCancel(ctx)
	// Without a leader a member knows nothing new, and says so.
	events := e.client.Watch(clientv3.WithRequireLeader(watching), key, clientv3.WithCreatedNotify())
	timer := time.NewTimer(confirmation)
	defer timer.Stop()
	err := context.DeadlineExceeded
	select {
	case first, open := <-events:
		if err = first.Err(); err == nil && !open {
			err = context.Cause(ctx)
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
