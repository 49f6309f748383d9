// Package bench compares package memory with other implementations in one run, so that other load
// on the computer slows all implementations:
//
//	go test -bench . -cpu 2
//
// The benchmark Renew measures renewals. It compares package memory with
//
//   - the lessor of etcd, which keeps the leases of an etcd server in memory,
//   - [lease.NewAuthority] over the same store, and
//   - the least that any store must do, which is one mutex, one look-up in a map and one reading of
//     the clock.
//
// The benchmark Grant compares the first acquire of a name with an insertion into a plain map under
// a mutex. The acquire and the insertion store the same amount of data. The benchmark Cores
// compares renewals on one core with renewals on two cores.
//
// Package bench is a separate module, so that users of the library do not depend on the server of
// etcd.
package bench
