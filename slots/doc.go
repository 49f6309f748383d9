// Package slots lets at most N holders work at once, in any number of processes.
//
// Each slot is a lease, and all slots have the same prefix. A holder has its slot until its function has
// returned, and its fencing token is that of the lease. Each call that waits also holds a lease under the
// prefix, its place in the queue, so every process sees the same queue in one list. The queue is ordered by
// [Options.Priority] and then by arrival. If no slot is free, a process with a higher priority breaks the
// lease of the holder with the lowest priority, which gets time to stop.
//
// With one slot and two priorities, a preferred leader gets its work back when it returns.
package slots
