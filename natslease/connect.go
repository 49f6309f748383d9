package natslease

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConnectOptions returns options for a client that holds leases. Pass these options to nats.Connect before
// your own options. They set:
//
//   - A ping every 3 s. The client closes a connection when two pings are unanswered. With the defaults of
//     nats.go, it takes four to six minutes to detect a connection that died silently.
//   - Reconnecting forever, every 250 ms plus up to 100 ms of jitter. With the defaults, a client gives up
//     after 60 attempts, which are 2 s apart.
//   - No buffer for requests while there is no connection. With the default buffer, the client still sends a
//     request after it has reconnected, even if the request was canceled long ago.
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

// BucketConfig returns the configuration of a bucket that stores leases. Pass the configuration to the method
// CreateKeyValue of a jetstream.JetStream. The bucket is stored in files, keeps one version of each key, and
// has no limit of age or size. Use 3 or 5 replicas. With 1 replica, the loss of a disk loses all leases and
// their tokens.
func BucketConfig(bucket string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      bucket,
		Description: "leases",
		History:     1,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}
