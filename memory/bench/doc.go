// Package bench compares the authority of package memory with others in one run, so that whatever
// slows the machine slows all of them:
//
//	go test -bench . -cpu 2
//
// Renew compares a renewal with etcd's lessor, which keeps the leases of an etcd server in memory,
// with [lease.NewAuthority] over the same store, and with what no store can be faster than: a mutex,
// a look-up in a map and a reading of the clock. Grant compares the first acquire of a name with
// putting as much into a plain map under a mutex. Cores compares renewals on one core and on two.
//
// It is a module of its own so that users of the library do not depend on etcd's server.
package bench
