package natslease

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConnectOptions returns options to pass to nats.Connect, before your own, for a client that holds leases:
//
//   - A ping every 3 s. The client closes a connection when two pings are unanswered. With the defaults
//     of nats.go, it needs four to six minutes to detect a connection that died silently.
//   - Reconnecting forever, every 250 ms plus up to 100 ms of jitter. With the defaults, a client stops
//     trying after 60 attempts, which are 2 s apart.
//   - No buffer for requests while there is no connection. With the default buffer, the client still
//     sends a request after the reconnect, even if the caller abandoned it long ago.
func ConnectOptions() []nats.Option {
	return []nats.Option{
		nats.PingInterval(3 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1),
	}
}

// BucketConfig returns the configuration of a bucket for leases, to pass to CreateKeyValue of a
// jetstream.JetStream. The bucket is stored in files, keeps one version of each key, and has no limit
// of age or size. Use 3 or 5 replicas. With 1 replica, a lost disk loses all leases and their tokens.
func BucketConfig(bucket string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      bucket,
		Description: "leases",
		History:     1,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}
