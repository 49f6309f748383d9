// Package slots lets at most N functions run at once, in any number of processes.
//
// Each slot is a lease, and the names of all slots have the same prefix. A call of [Slots.Run] holds its slot
// until its function has returned, and passes the fencing token of the slot to this function. If all slots
// are taken, the call waits in a queue. The queue consists of leases, too, so all processes see the same
// queue when they list the leases under the prefix. Calls with a higher [Options.Priority] come first, and
// calls with the same Priority in the order of their arrival. If no slot is free, a call with a higher
// Priority breaks the lease of the holder with the lowest Priority, and gives it time to stop.
//
// A single slot elects a leader. If one process has a higher Priority than the others, it is the preferred
// leader: when this process starts again after a crash, it replaces the process that has been the leader in
// the meantime.
package slots
