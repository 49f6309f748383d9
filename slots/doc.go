// Package slots lets at most N holders work at once, in any number of processes.
//
// The slots are leases under a prefix. A holder keeps its slot until its function has returned, and its
// fencing token is that of this slot. Calls that wait each have a lease under the same prefix, so all see
// the same queue in one list. It is ordered by [Options].Priority and then by arrival. If no slot is free, a
// process with a higher priority breaks the lease of the holder with the lowest, which gets time to stop.
//
// With one slot and two priorities, a preferred leader gets its work back when it returns.
package slots
