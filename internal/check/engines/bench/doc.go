// Package bench compares package memory with other implementations in one run, so that other load on the
// computer slows all of them:
//
//	go test -bench . -cpu 2
//
// The benchmark Renew measures renewals. It compares package memory with
//
//   - the lessor of etcd, which keeps the leases of an etcd server in memory,
//   - [lease.NewAuthority] over the same store, and
//   - the least that any store must do: one mutex, one look-up in a map and one reading of the clock.
//
// The benchmark Grant compares the first acquire of a name with an insertion of the same amount of data
// into a plain map under a mutex. The benchmark Cores compares renewals on one core with those on two.
//
// Package bench is a separate module, so that users of the library do not depend on the server of etcd.
package bench
