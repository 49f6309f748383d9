package natslease

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ConnectOptions returns options of nats.Connect for a client that holds leases. Add your own after
// them:
//
//   - A ping every 3 s, and a connection is given up when two were not answered. With the defaults
//     of nats.go, a client needs four to six minutes to notice that a connection has died silently.
//   - Reconnecting forever, every 250 ms and up to 100 ms more. With the defaults, a client gives up
//     for good after 60 attempts of 2 s.
//   - No buffer for what is sent while there is no connection. With the default, a request that was
//     given up long ago is still sent after the reconnect.
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

// BucketConfig returns the configuration of a bucket of leases, for CreateKeyValue of a
// jetstream.JetStream: files, a history of one, and no limit of age or size. The number of replicas
// should be 3 or 5. With 1, a lost disk loses all leases and their tokens.
func BucketConfig(bucket string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket:      bucket,
		Description: "leases",
		History:     1,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
	}
}
