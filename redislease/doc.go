// Package redislease keeps leases in Redis, version 7 or newer, or in Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redislease.New(client, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [session.Session] that can hold the lease. [Store.Authority] returns a
// [lease.Authority], for programs that also break leases with a grace period, acquire infinite leases, or
// take over a lease of the same owner.
//
// # What Redis does not promise
//
// The promises of a lease hold only while the server keeps the writes that it has acknowledged. These are the
// risks, and the settings that reduce them:
//
//   - A restart loses data that is not on the disk. Use appendonly yes and appendfsync always. Without these
//     settings, a server that crashes loses the held leases and the newest tokens.
//   - A failover loses the writes that the promoted replica has not received, because replication is
//     asynchronous. If the replica lacks the record of a lease that is held, it can grant the lease a second
//     time. Then two holders believe that they hold the lease, with the same token, so not even a guard can
//     tell them apart: see TestFailover in internal/check/engines/locktest.
//   - With [Options.Replicas], every write and every load waits until that number of replicas has
//     acknowledged it. If fewer replicas acknowledge a request, its outcome is unknown, and no holder relies
//     on the lease. Set Replicas to the number of all replicas that can be promoted, so that a failover loses
//     no acknowledged write.
//   - Even with Replicas, a primary that restarts with an empty disk empties its replicas.
//   - A promoted server decides by its own clock. If its clock is ahead of the clock of the old primary,
//     leases end earlier by the difference.
//   - A server whose maxmemory-policy is not noeviction drops keys when its memory is full, so a Store
//     returns a permanent error instead of using such a server. The Store checks the policy on each new
//     connection, and every 2 s while it sends requests. So if the policy is changed while the memory is
//     full, the server can drop keys for up to 2 s.
//   - After FLUSHALL, FLUSHDB or the deletion of a floor (see Keys), no promise holds for the leases whose
//     records or floors were deleted.
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
// [Store.Key] returns the key of a lease. The number in braces is one of 16,384 buckets, which a hash of the
// name chooses. Each bucket has a floor, under a key such as lease-floor:{9759}, which stores the highest
// epoch of the bucket. In a cluster, a floor is in the same slot as the leases of its bucket. Floors are
// never deleted, and all together take about 2 MB.
//
// The record of a lease expires when the lease has not been locked for the time in [Options.Keep].
//
// To free a lease, call [lease.Break] with a grace period, so that its holder stops first. If you delete the
// key with DEL instead, another process can acquire the lease at once. The holder is not notified of the
// deletion, not even with session.Options.Watch, and believes that it has the lease until its next renewal is
// refused. To notify the waiting processes of the deletion, and also a holder with session.Options.Watch,
// PUBLISH the name of the lease on the channel of its bucket, such as lease-signal:{9759}. The tokens of the
// lease still rise after the deletion.
//
// A Store that reads an invalid record returns an error that names the key. Do not change a record by hand:
// if you change its fields but not the field "version", a Store that remembers the record does not notice the
// change. The next swap of this Store then replaces all fields, and its next renewal only "until", "version"
// and "time".
//
// # Tokens
//
// The epoch of a name without a record is the highest epoch in its bucket or, if that is greater, the current
// time in microseconds, rounded down to a multiple of [Options.Keep]. Tokens therefore keep rising after a
// record expires or is deleted, and usually even after a loss of all data. The exception is a lease that had
// no record when it was acquired: if all data is lost within [Options.Keep] after that, the lease can get the
// same tokens again.
//
// # Time
//
// The server decides by its own clock, which the scripts read with TIME, whether a lease has expired. If this
// clock is set forward, leases end early. If the clock is set backward, leases last longer. When it has been
// set backward by more than a second, the Store logs a warning, at most once a minute. Without further
// measures, the lease of a crashed holder would stay locked until the clock has caught up. So while the clock
// is behind, a process treats a lease as ended when it has seen the record unchanged for the duration of the
// lease. The clock of a client need not show the right time, but it must run at the right rate: see
// session.Options.
//
// Each record stores the time of its last write, and no later request for the record uses an earlier time. If
// the server's clock is set backward, requests use the time in the record until the clock has passed it.
// However, [Store.Load] stores the time only if the lease has ended, or if [Options.Replicas] is set. If the
// clock is set backward between two calls of Load for a held lease, the second call can therefore return an
// earlier time than the first.
//
// # Exchanges
//
// An exchange is one request to the server and its answer. [Store.Load] and [Store.Swap] each take one
// exchange, in which the server runs one script. An acquire of a free lease takes two exchanges, a Load and a
// Swap. If the lease is locked, the acquire takes only the Load.
//
// A renewal, a change or a release takes one exchange if the lease was acquired through the same Store. The
// Store then computes the new record from the last record that it wrote, and the script writes the new record
// only if that last record is still in Redis and the lease has not ended. Otherwise, the Store calls Load and
// Swap. There is one exception. If the answer to a renewal was lost, the record in Redis shows a later end of
// the lease than the Store remembers, but the same holder and the same token. The next renewal then still
// takes one exchange. If [Options.Replicas] is set, the command WAIT is sent in the same exchange as the
// script.
//
// Requests that are made at the same time share pipelines, over at most 8 connections to a server. A request
// whose context ends before it is sent is never sent. Renewals and releases are sent before all other
// requests. If many renewals wait, the leases that end first are renewed first. If the server is too slow to
// renew one more lease, the Store refuses to acquire a lease. The refusal is an [engine.FullError], which
// says how many renewals a second the server can do, and how many its leases would need: see [engine.Gate].
//
// A Store opens its own connections, with the options of the client that was passed to [New]. Unlike the
// connections of the client, the connections of the Store respect contexts and never send a command twice. A
// second attempt of a swap would report a conflict even if the server had applied the first. For each new
// connection, the Store first reads the eviction policy of the server, which takes one more exchange.
//
// If a server does not answer, the Store closes its connections to this server, and sends the next request
// over a new connection. The Store does the same if a server answers that it is a replica, is loading, has
// too few replicas or belongs to a cluster. The watches at such a server are closed, at the latest 6 s after
// its last answer. Behind a sentinel, a Store that is in use also asks the sentinels once a second which
// server is the primary, because a primary that is cut off from the sentinels can still accept writes. If a
// sentinel can freeze, make the client with [FailoverOptions], so that the client turns to another sentinel
// within seconds.
//
// The scripts have the flag allow-oom, so leases still work on a server whose memory is full of other data. A
// replica refuses to run the scripts, so Load never returns stale data.
//
// # Cluster
//
// With a [*redis.ClusterClient], each lease is stored by the primary of its slot. While a slot is being moved
// to another server, requests for its leases are retried for about 0.2 s, and then fail. If a slot is moved
// while [Store.List] runs, the list can miss leases. [New] rejects a [*redis.Ring].
//
// # Permissions
//
// A program that uses leases needs these permissions:
//
//	ACL SETUSER worker on >secret ~lease:* ~lease-floor:* &lease-signal:*
//	    +evalsha +eval +time +exists +hset +hmget +hgetall +hlen +pexpire +pexpireat +persist
//	    +publish +subscribe +info +scan +wait
//
// [Store.List] needs +scan, [Store.Watch] needs +subscribe, [Options.Replicas] needs +wait, and the check of
// the eviction policy needs +info, unless [Options.AssumeNoEviction] is set. A cluster also needs
// +cluster|slots and +asking at every server. A client with a DB other than 0 needs +select. A [Mark] needs
// +get and +set for its key.
//
// # Guarding data
//
// To guard data in the same Redis, write the data with a script that also compares the token: see [Mark].
package redislease
