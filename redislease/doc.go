// Package redislease keeps leases in Redis, version 7 or newer, or Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redislease.New(client, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// From there on it is any other [lease.Lease]. All that [lease.Authority] offers is there: breaking
// with grace, changing, infinite leases, taking over by owner and fencing tokens.
//
// # What Redis does not promise
//
// The promises of a lease hold while the server keeps what it has acknowledged. Redis does that under
// conditions only:
//
//   - A restart loses what is not on the disk. Use appendonly yes and appendfsync always. Without
//     them a server that crashes forgets leases that are held, and the latest tokens.
//   - A failover loses what the promoted replica did not get, because replication is asynchronous. A
//     grant that was acknowledged is then granted again: two holders believe, and both have the same
//     token, so that not even a guard can tell them apart. TestFailoverLosesAGrant shows it.
//   - With [Options.Replicas] every write and every load waits for so many replicas. With fewer
//     acknowledgements the outcome is unknown, and nobody believes. So a failover to a replica that
//     has acknowledged loses nothing that was answered. Give the number of all replicas that can be
//     promoted: with fewer, another one may be.
//   - Even then, a primary that restarts with an empty disk empties its replicas, and a promoted
//     server decides by its own clock. If that is ahead, leases end earlier by the difference.
//   - A server with another maxmemory-policy than noeviction drops keys when its memory is full.
//     It is refused, at every new connection, with a permanent error.
//   - FLUSHALL, FLUSHDB and deleting a floor end all promises about the names that it kept.
//
// Quorums over independent servers are not offered. They need what they are to replace, clocks and
// disks that can be trusted, and have no order of tokens.
//
// # Keys
//
// A lease is a hash, for example
//
//	redis> HGETALL lease:{8758}:jobs/nightly
//	 state    leased
//	 owner    worker-1
//	 until    2012-01-26T23:30:33.512307000Z
//	 duration 30s
//	 epoch    00001795330800000007
//	 id       1f812371-a41d-49e6-b123-f4b542e851c5
//	 version  2ocdeuz8wrooq-12
//	 time     2012-01-26T23:30:03.512307000Z
//
// [Store.Key] returns the key of a name. A name belongs to one of 16,384 buckets, by its hash, whose
// number is in the braces. A bucket has one floor, the hash lease-floor:{8758}, in the same slot of a
// cluster. It keeps the highest epoch of the bucket. Floors are never deleted; all together they take
// some 2 MB.
//
// DEL of a record frees the lease, and its tokens go on to rise. Do not change a record by hand: what
// is not a record is an error that names the key. To wake those who wait, PUBLISH the name on
// lease-signal:{8758}. A record that is not locked any more expires after [Options.Keep]. Every valid
// name fits.
//
// # Tokens
//
// The first epoch of a name that has no record is the time in microseconds, rounded down to a
// multiple of [Options.Keep], or the highest epoch of the bucket if that is higher. So tokens rise
// when a record has expired or was deleted. They also rise when all data was lost, if that was at
// least Keep after the last name was taken for the first time.
//
// # Time
//
// The server decides by its own clock, TIME. The clocks of clients do not matter, only their rates,
// see session.Options. If the clock of the server is set forward, leases end early. If it is set
// backward, they last longer: a record keeps the highest time that was told with it, and time stands
// still for it until the clock is there again. A load keeps the time only if the lease is over by
// then. So an earlier load of a lease that is held may have shown a later time.
//
// # Exchanges
//
// A load is one exchange and a swap another, each a script. An acquire without contention is both,
// and a refusal is a load. A renewal, a change and a release of a lease that was taken through the
// same Store are one exchange, which begins with what the Store committed last ([Options.Names]). The
// script commits only if the record is still that and has not come to its until. If it is not, a load
// and a swap follow. With Replicas, WAIT goes in the same exchange as the script, over the same
// connection.
//
// A Store has connections of its own, made with the options of the client that New was given.
// go-redis sends a command again if a connection breaks. A swap must not be sent twice, since the
// second one would say that nothing was written. So the connections of a Store never do that, and
// they keep to contexts. Each new connection asks for the eviction policy, which is one more
// exchange.
//
// Scripts may run when maxmemory is reached (allow-oom), so that leases go on in a server that other
// data has filled. A replica refuses them, so that no load is stale.
//
// # Cluster
//
// With a [*redis.ClusterClient] each name is kept by the primary of its slot. While a slot is moved,
// requests for its names are sent again for a fifth of a second, and then fail. A list may miss
// names whose slot is moved meanwhile. A [*redis.Ring] is refused.
//
// # Permissions
//
// A user of leases needs these; each of them is tested:
//
//	ACL SETUSER worker on >secret ~lease:* ~lease-floor:* &lease-signal:*
//	    +evalsha +eval +time +exists +hset +hmget +hgetall +pexpire +pexpireat +persist
//	    +publish +subscribe +info +scan +wait
//
// +scan is for lists, +subscribe for waiting, +wait for Options.Replicas, and +info for the eviction
// policy: see [Options.AssumeNoEviction]. A [Mark] needs +get and +set on its key.
//
// # Guarding data
//
// Data in the same Redis is best protected by a script that compares the token and writes: see [Mark].
package redislease
