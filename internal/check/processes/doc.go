// Package processes lets several processes hold one lease in turns, and write to a resource behind
// a guard. Each process is a copy of the test binary. They are stopped and continued, killed and
// started again. The package checks two things, without a clock, and without trusting what it
// checks:
//
//   - A holder does not believe while another process holds the lease. It asks the resource for the newest
//     token that was sent there, and then calls CheckAlive. If that is true, and the token is newer than
//     its own, two processes believed at the same time.
//   - No stale write passes the guard. The resource records what was admitted. No write may follow a write
//     or a read under a newer token, no update may be lost, and no two holders may send the same token.
//
// The resource itself does not fail, so that late writes arrive. A package of tests uses it like
// this:
//
//	func TestMain(m *testing.M) {
//		if processes.Hold(open) {
//			return
//		}
//		os.Exit(m.Run())
//	}
//
//	c := processes.New(t, processes.Options{Name: t.Name(), Endpoints: endpoints, Duration: time.Second})
//	for range 100 {
//		c.Harm(rand) // and do harm to the server
//	}
//	report := c.End()
package processes
