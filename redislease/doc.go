// Package redislease keeps leases in Redis, version 7 or newer, or in Valkey.
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	store, err := redislease.New(client, nil)
//	defer store.Close()
//	l, err := store.Lease("jobs/nightly", nil)
//
// [Store.Lease] returns a [session.Session] that can hold the lease. [Store.Authority] returns a
// [lease.Authority], for programs that also break leases with a grace period, acquire infinite leases, or
// take over a lease of the same owner. To guard data in the same Redis, write the data with a script that
// also compares the token: see [Mark].
//
// The promises of a lease hold only while the server keeps the writes that it has acknowledged. README.md says
// what a failover, a restart or a full memory can lose, and which settings prevent that. It also describes the
// permissions, how to free a lease by hand, and what requests cost.
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
// never deleted, and all together take about 2 MB. The record of a lease expires when the lease has not been
// locked for the time in [Options.Keep].
//
// A Store that reads an invalid record returns an error that names the key. If you change the fields of a
// record but not the field "version", a Store that remembers the record does not notice the change. The next
// swap of this Store then replaces all fields, and its next renewal only "until", "version" and "time".
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
// set backward by more than a second, the Store logs a warning, at most once a minute, and treats a lease as
// ended when it has seen the record unchanged for the duration of the lease. So the lease of a crashed holder
// still ends. The clock of a client need not show the right time, but it must run at the right rate: see
// session.Options.
//
// Each record stores the time of its last write, and no later request for the record uses an earlier time. If
// the server's clock is set backward, requests use the time in the record until the clock has passed it.
// However, [Store.Load] stores the time only if the lease has ended, or if [Options.Replicas] is set. If the
// clock is set backward between two calls of Load for a held lease, the second call can therefore return an
// earlier time than the first.
//
// # Connections
//
// A Store opens its own connections, at most 8 to a server, with the options of the client that was passed to
// [New]. Unlike the connections of the client, they respect contexts and never send a command twice: a second
// attempt of a swap would report a conflict even if the server had applied the first. Requests that are made
// at the same time share pipelines, and renewals and releases are sent first.
//
// A request whose context ends before it is sent is never sent. If a server does not answer, or answers that
// it must not store leases, the Store closes its connections to this server, and sends the next request over a
// new connection. The watches at such a server are closed, at the latest 6 s after its last answer. A replica
// refuses to run the scripts, so Load never returns stale data. The scripts have the flag allow-oom, so leases
// still work on a server whose memory is full of other data.
//
// With a [*redis.ClusterClient], each lease is stored by the primary of its slot. While a slot is being moved
// to another server, requests for its leases are retried for about 0.2 s, and then fail. If a slot is moved
// while [Store.List] runs, the list can miss leases. [New] rejects a [*redis.Ring].
package redislease
