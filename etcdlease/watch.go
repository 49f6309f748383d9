package etcdlease

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// confirmTimeout is the longest time that Watch waits for etcd to confirm the watch.
const confirmTimeout = 5 * time.Second

// Watch returns once etcd has confirmed the watch. After the confirmation, the client receives
// every later revision of the key, even if the client must reconnect.
func (e *engine) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key := e.prefix + name
	watching, cancel := e.watching(ctx)
	// The method Watch of the client returns only when etcd has confirmed the watch or when the
	// context has ended. The timer must therefore start before the call.
	impatient := time.AfterFunc(confirmTimeout, cancel)
	// A member of etcd that has lost its leader receives no new revisions. WithRequireLeader makes
	// such a member cancel the watch.
	events := e.client.Watch(clientv3.WithRequireLeader(watching), key, clientv3.WithCreatedNotify())
	var first clientv3.WatchResponse
	confirmed := false
	select {
	case first, confirmed = <-events:
	case <-watching.Done():
	}
	err := first.Err()
	switch {
	case !impatient.Stop() && ctx.Err() == nil:
		err = context.DeadlineExceeded
	case err == nil && !confirmed:
		err = ctx.Err()
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
