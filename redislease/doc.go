// Package redislease keeps leases in Redis, version 7 or newer, or in Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redislease.New(client, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a holder, which is a [lease.Lease]. [Store.Authority] returns an authority for every
// kind of request: it can also break a lease with a grace period, acquire an infinite lease, or take over a
// lease of the same owner.
//
// # What Redis does not promise
//
// The promises of a lease hold only while the server keeps the writes that it has acknowledged. These are the
// risks, and the settings that reduce them:
//
//   - A restart loses data that is not on the disk. Use appendonly yes and appendfsync always. Without these
//     settings, a server that crashes loses leases that are held, and the newest tokens.
//   - A failover loses the writes that the promoted replica has not received, because replication is
//     asynchronous. If that replica lacks the grant of a held lease, it can grant the lease a second time.
//     Both holders then believe that they hold it, and have the same token, so not even a guard can tell them
//     apart: see TestFailover in internal/check/engines/locktest.
//   - With [Options.Replicas], every write and every load waits until that number of replicas has acknowledged
//     it. If fewer do, the outcome of the request is unknown, and no holder relies on the lease. A failover to
//     a replica that has acknowledged a write does not lose it. Set Replicas to the number of all replicas
//     that can be promoted. With a lower number, a replica that has not acknowledged a write could be
//     promoted.
//   - Even with Replicas, a primary that restarts with an empty disk empties its replicas.
//   - A promoted server decides by its own clock. If that is ahead of the clock of the old primary, leases end
//     earlier by the difference.
//   - A server whose maxmemory-policy is not noeviction drops keys when its memory is full. A Store does not
//     use such a server, and returns a permanent error. It checks the policy on each new connection, and every
//     2 s while it sends requests. So if the policy is changed while the memory is full, the server can drop
//     keys for up to 2 s.
//   - After FLUSHALL, FLUSHDB or the deletion of a floor (see Keys), no promise holds for the names that they
//     affect.
//
// Package redislease does not use the Redlock algorithm, in which a lock is held if a majority of independent
// servers grants it. Redlock relies on the clocks and disks of all servers, and its tokens have no order.
//
// # Keys
//
// A lease is a hash, for example:
//
//	redis> HGETALL lease:{9759}:jobs/nightly
//	 state    leased
//	 owner    worker-1
//	 until    2012-01-26T23:30:33.512307000Z
//	 duration 30s
//	 epoch    00001795330800000007
//	 id       1f812371-a41d-49e6-b123-f4b542e851c5
//	 version  2ocdeuz8wrooq-12
//	 time     2012-01-26T23:30:03.512307000Z
//
// [Store.Key] returns the key of a name. Every valid name can be part of a key. A hash of the name assigns each
// lease to one of 16,384 buckets. The number in the braces is that of the bucket. Each bucket has a floor,
// under a key such as lease-floor:{9759}, which stores the highest epoch of the bucket. In a cluster, the floor
// is in the same slot as the lease records of the bucket. Floors are never deleted, and all together take about
// 2 MB.
//
// If a lease has not been locked for the time in [Options.Keep], its record expires.
//
// To free a lease, call [lease.Break] with a grace period, so that its holder stops first. If you delete its
// key with DEL instead, the holder believes that it has the lease until its next renewal is refused, even with
// Watch, and another process can acquire the lease at once. To make a holder with Watch, and the programs that
// wait, read the record at once, PUBLISH the name of the lease on the channel of its bucket, such as
// lease-signal:{9759}. The tokens of the lease still rise after the deletion.
//
// A Store that reads an invalid record returns an error that names the key. Do not change a record by hand. If
// you change other fields but not the field "version", a Store that remembers the record does not notice the
// change. Its next swap replaces all fields, and its next renewal only "until", "version" and "time".
//
// # Tokens
//
// If a name has no record, its epoch is the greater of the current time, in microseconds and rounded down to a
// multiple of [Options.Keep], and the highest epoch in the bucket of the name. Tokens therefore keep rising
// after a record has expired or was deleted, and usually even after a loss of all data. The exception is a name
// that was acquired when it had no record, because it was new or its record had expired or was deleted: if all
// data is lost within [Options.Keep] after that acquire, the name can get the same tokens again.
//
// # Time
//
// The server decides by its own clock, which the scripts read with TIME, whether a lease has expired. If it is
// set forward, leases end early. If it is set backward, leases last longer. If it is set backward by more than
// a second, the Store logs by how much the clock is behind, at most once a minute, and a process that has seen
// the record of a lease unchanged for the duration of the lease treats the lease as ended. So the lease of a
// crashed holder does not stay locked until the clock has caught up. The clock of a client need not show the
// right time, but it must run at the right rate: see session.Options.
//
// Each record stores the time of its last write, and no later request for the record uses an earlier time. If
// the server's clock is set backward, requests use the time in the record until the clock has passed it.
// But [Store.Load] stores the time of the read only if the lease has ended, or if [Options.Replicas] is set. If
// the clock is set backward between two calls of Load for a held lease, the second call can therefore return an
// earlier time than the first.
//
// # Exchanges
//
// An exchange is one request to the server and its answer. [Store.Load] and [Store.Swap] each take one
// exchange, in which the server runs one script. An acquire without contention takes two exchanges: a Load and
// a Swap. A refused request takes one, a Load.
//
// A renewal, a change or a release takes one exchange if the lease was acquired through the same Store, which
// computes the new record from the last one that it committed. A Store remembers at most [Options.Names]
// records. The script writes only if the record in Redis is still the remembered one and the lease has not
// ended. A renewal also succeeds if only the end of the record differs, because the answer to an earlier
// renewal was lost. Otherwise, the Store calls Load and Swap. If [Options.Replicas] is set, the command WAIT is
// sent in the same exchange as the script, over the same connection.
//
// Requests that are made at the same time share pipelines, over at most 8 connections to a server. A request
// whose context ends before it is sent is never sent. Renewals and releases go before all other requests, and
// among the renewals that wait, those of the leases that end first. If the server is too slow to renew one more
// lease, the Store refuses to acquire it, with an [engine.FullError] that says how many renewals are needed and
// how many the server does: see [engine.Gate].
//
// A Store opens connections of its own, with the options of the client that was passed to [New], except that
// they respect contexts and never send a command twice. By default, go-redis sends a command again if a
// connection breaks, but the second attempt of a swap would report a conflict even if the server applied the
// first. For each new connection, the Store first reads the eviction policy of the server, which takes one more
// exchange.
//
// If a server answers that it is a replica, is loading, has too few replicas or is one of a cluster, or if it
// does not answer, the Store drops its connections to it, and sends the next request over a new connection. The
// watches of such a server are closed, at the latest 6 s after its last answer. Behind a sentinel, a Store that
// is in use also asks the sentinels once a second which server is the primary, because a primary that is cut
// off from the sentinels can still accept writes. To pass a frozen sentinel within seconds, make the client
// with [FailoverOptions].
//
// The scripts have the flag allow-oom, so leases still work on a server whose memory is full of other data. A
// replica refuses to run the scripts, so Load never returns stale data.
//
// # Cluster
//
// With a [*redis.ClusterClient], each name is stored by the primary of its slot. While a slot is being moved to
// another server, requests for the names in it are retried for about 0.2 s, and then fail. If a slot is moved
// while [Store.List] runs, the list can miss names in it. [New] rejects a [*redis.Ring].
//
// # Permissions
//
// A program that uses leases needs these permissions, each of which is tested:
//
//	ACL SETUSER worker on >secret ~lease:* ~lease-floor:* &lease-signal:*
//	    +evalsha +eval +time +exists +hset +hmget +hgetall +pexpire +pexpireat +persist
//	    +publish +subscribe +info +scan +wait
//
// [Store.List] needs +scan, [Store.Watch] needs +subscribe, [Options.Replicas] needs +wait, and the check of
// the eviction policy needs +info: see [Options.AssumeNoEviction]. A cluster also needs +cluster|slots and
// +asking at every server. A client with a DB other than 0 needs +select. A [Mark] needs +get and +set for its
// key.
//
// # Guarding data
//
// To guard data in the same Redis, write the data with a script that also compares the token: see [Mark].
package redislease
