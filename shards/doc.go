// Package shards divides names among processes. Each name is a shard, for example a partition of a stream,
// a tenant or a queue. At any time, only one process works on a shard, and all processes have about the
// same number of shards. They need no other service than the store that holds the leases.
//
//	g, err := shards.New(store.Authority(), "orders/", nil)
//	err = g.Run(ctx, names, func(ctx context.Context, name string, tok lease.Token) error {
//		return consume(ctx, name, tok) // ctx ends before another process works on the shard
//	})
//
// Every process runs the same program. It holds a lease with which it announces itself,
// prefix+"members/"+number, and one for each of its shards, prefix+"shards/"+name. Once every Interval,
// each process lists the leases under the prefix, and all of them compute the same moves from the list. If
// a process has more than its share, it ends the context of the work on some shards with the cause
// [ErrMoving], waits until the work has returned, and releases their leases. A process that has less than
// its share acquires such a shard at its next poll. Nothing moves if the numbers of shards differ by at
// most one.
//
// A process lists the leases at once when it starts, and a second time within one Interval. It acquires
// nothing before the second list. Otherwise, if many processes start together, the first would take every
// shard.
//
// # Conditions
//
// The context of the work ends before another process works on the shard, under the conditions that package
// session states. If the work has not returned Grace and two Intervals after its shard should move, the
// process that should get the shard breaks the lease of the shard with a grace period. If the work is still
// running when that period ends, only the fencing token protects the data, so send the token with each
// write.
//
// # Bounds
//
// As long as the store answers, a shard that moves to another process is idle for at most one Interval. All
// shares are balanced at most two Intervals after a process has started or left, plus the time that the
// work takes to stop. The shards of a process that crashes are idle for at most Session.Duration and one
// Interval.
//
// If a process does not take a free shard that belongs to its share, for example because the work on the
// shard fails there, another process takes the shard after at least four Intervals. For the next six times
// Session.Duration, the shares are computed without that shard. They are also computed without a shard that
// no process can take; [Shard].Err says why it cannot be taken. A process in which all work fails loses its
// shards, and tries again with one shard after eight times Session.Duration or more.
//
// # Cost
//
// After its start, each process lists the prefix at most once an Interval. If a list takes longer than a
// twentieth of the Interval, the process makes its Interval 20 times as long as the list takes, but not
// longer than Session.Duration (or Options.Interval, if that is longer). The renewals cost about one
// request for each shard and RenewInterval. The work of each shard runs on a goroutine of its own.
package shards
