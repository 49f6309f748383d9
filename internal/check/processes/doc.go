// Package processes holds one lease with several processes, each a copy of the test binary, that
// are stopped and continued, and killed and started again, while they write to a resource
// behind a guard. It checks two things, without a clock and without trusting what it checks:
//
//   - A holder does not believe while another holds. A holder asks the resource for the newest
//     token that was shown to it, and then looks whether it believes: if so, and if that token
//     is newer than its own, then two believed at the same time.
//   - No stale write passes the guard. The resource keeps a record of its own of what was
//     admitted: no write may follow one, or a read, under a newer token; no update may be lost;
//     and no token may be shown by two holders.
//
// The resource is never harmed, so that late writes do arrive. A package of tests uses it so:
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
