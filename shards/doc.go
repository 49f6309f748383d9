// Package shards divides names among processes. Each name is a shard, for example a partition of a stream, a
// tenant or a queue. One process at a time works on a shard, and all have about the same number of shards.
// They need no other service than the authority of the leases.
//
//	g, err := shards.New(store.Authority(), "orders/", nil)
//	err = g.Run(ctx, names, func(ctx context.Context, name string, tok lease.Token) error {
//		return consume(ctx, name, tok) // ctx ends before another process works on the shard
//	})
//
// Every process runs the same program. It has a lease of its own, prefix+"members/"+number, and one for each
// of its shards, prefix+"shards/"+name. Once every Interval it lists the prefix, and computes the same moves
// as all others. If it has more than its share, it ends the context of the work on some shards with the cause
// [ErrMoving], waits until the work has returned, and releases the lease. The process that lacks a shard
// acquires it at its next poll. Nothing moves if the numbers of shards differ by at most one.
//
// A process makes its first list at once and its second within one Interval. It acquires nothing before the
// second, so processes that start together do not first give everything to one.
//
// # Conditions
//
// The context of the work ends before another process works on the shard, under the conditions that package
// session states. If the work has not returned Grace and two Intervals after its shard should move, the
// process that lacks the shard breaks its lease with a grace. Only the fencing token then protects the data,
// so send it with each write.
//
// # Bounds
//
// If the store answers, the work of a shard that moves begins elsewhere at most one Interval after its
// release. All shares are balanced at most two Intervals after a process has started or left, plus the time
// that the work takes to stop. The shards of a process that crashes are idle for at most Session.Duration
// and one Interval. If a process does not take its share of the free shards, for example because the work
// fails there, another takes it after at least four Intervals. Such a shard does not count in the shares for
// six Durations, and neither does one that no process can take: [Shard.Err] says why. A process in which all
// work fails has no shard, besides one that it tries after eight Durations or more.
//
// # Cost
//
// Besides the first time, each process lists the prefix at most once an Interval. If a list takes longer
// than a twentieth of it, the process makes its Interval 20 times as long as the list takes, but not longer
// than Session.Duration (or Options.Interval, if that is longer). The renewals cost about one request for
// each shard and RenewInterval. The work of each shard runs on a goroutine of its own.
package shards
