// Package shards divides names among processes. Each name is a shard, for example a partition of a stream, a
// tenant or a queue. At any time, only one process works on a shard, and all processes have about the same
// number of shards. The processes need no other service than the store that holds the leases.
//
//	g, err := shards.New(store.Authority(), "orders/", nil)
//	err = g.Run(ctx, names, func(ctx context.Context, name string, tok lease.Token) error {
//		return consume(ctx, name, tok) // ctx ends before another process works on the shard
//	})
//
// Every process runs the same program. The process announces itself with a lease named
// prefix+"members/"+number, and holds a lease named prefix+"shards/"+name for each of its shards. Once every
// Interval, each process lists the leases under the prefix. Because all processes compute the same moves from
// this list, they agree on who gets which shard. As long as no process has two shards more than another
// process, no shard moves.
//
// If a process has more than its share, it ends the context of the work on some shards with the cause
// [ErrMoving], waits until the work has returned, and releases the leases of these shards. A process that has
// less than its share acquires such a shard at its next poll.
//
// When a process starts, it lists the leases at once, and a second time within one Interval. The process
// acquires no shard before the second list, because otherwise the first of many processes that start together
// would take every shard.
//
// # Conditions
//
// The context of the work ends before another process works on the shard, under the conditions in the
// documentation of package session. If a shard should move and its work does not stop in time, the process
// that should get the shard breaks the lease of the shard with a grace period. Before the process breaks the
// lease, it waits for the Grace and for two more Intervals. For example, with leases of 30 s and the default
// options, it breaks the lease at least 40 s after the shard should have moved. If the work goes on even
// after this grace period, only the fencing token protects the data, so send the token with each write.
//
// # Bounds
//
// As long as the store answers, a shard that moves to another process is idle for at most one Interval. After
// a process has started or left, all shares are balanced within two Intervals, plus the time that the work
// takes to stop. If a process crashes, its shards are idle until their leases have expired, and then for at
// most one Interval.
//
// A process may fail to take a free shard that it should get, for example because the work on the shard fails
// in this process. Another process then takes the shard after at least four Intervals. Until this process has
// held the shard for six times Session.Duration, the processes compute all shares without the shard. With
// leases of 30 s, this takes 3 minutes. Shards that no process can take are not part of any share either, and
// [Shard].Err says why they cannot be taken. If the work on all shards of a process fails, the process
// releases its shards. After a pause, the process tries again with one shard. This pause is at least eight
// times Session.Duration, for example 4 minutes with leases of 30 s.
//
// # Cost
//
// After its start, each process lists the prefix at most once an Interval. If listing the leases takes long,
// the process makes its Interval longer, so that it spends at most 5 % of its time on this. For example, if
// listing the leases takes 1 s, the process lists them every 20 s. However, the process does not make the
// Interval longer than Session.Duration, unless Options.Interval is longer. Every RenewInterval, each shard
// costs about one request for its renewal. The work of each shard runs on a goroutine of its own.
package shards
