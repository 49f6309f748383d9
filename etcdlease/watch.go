package etcdlease

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// confirmTimeout is how long Watch waits until etcd has confirmed the watch.
const confirmTimeout = 5 * time.Second

// Watch returns when etcd has confirmed the watch. From then on, the client receives every revision of the
// key, even if it has to reconnect.
func (e *backend) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key := e.prefix + name
	watching, cancel := e.watching(ctx)
	// The method Watch of the client returns only when etcd has confirmed the watch or the context has
	// ended, so the timer must start before the call.
	impatient := time.AfterFunc(confirmTimeout, cancel)
	// A member without a leader receives no new revisions. With the option WithRequireLeader, such a member
	// cancels the watch.
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
		return nil, e.describeError("watch", key, err)
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
