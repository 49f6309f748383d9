// Package controllerruntime elects leaders of controller-runtime and client-go at any authority of this
// library: in PostgreSQL, in etcd, and wherever else leases are kept. So controllers of several
// clusters can have one leader.
//
// There are two ways.
//
// [Lock] keeps client-go's elector, and puts the lease elsewhere:
//
//	lock, err := controllerruntime.NewLock(store.Authority(), "indexer-leader", hostname+"_"+uuid, nil)
//	mgr, err := manager.New(config, manager.Options{
//		LeaderElection:                      true,
//		LeaderElectionResourceLockInterface: lock,
//	})
//
// It keeps these weaknesses of the elector: a process that is suspended notices that its lease has
// ended only once it runs again, and with LeaderElectionReleaseOnCancel it releases the lease before
// its work has stopped. It mends two: an answer that is late is not believed, and a release can empty
// no lease of another.
//
// [Runnable] is the safe way. It holds a Session, and runs a function under it, in a manager whose own
// leader election is off:
//
//	l, err := store.Lease("indexer-leader", nil)
//	r, err := controllerruntime.NewRunnable(l, func(ctx context.Context, tok lease.Token) error {
//		// work until ctx ends, and send tok with each write
//	}, nil)
//	err = mgr.Add(r)
//	err = mgr.AddHealthzCheck("lease", r.Healthz)
//
// Its function is told to stop before the lease can be another's, whatever became of the answers.
//
// # Moving from client-go
//
//	client-go                    default   here                             default
//	LeaseDuration                15 s      session.Options.Duration         30 s
//	RenewDeadline                10 s      none: it follows from Duration and StopWindow
//	LeaseDuration-RenewDeadline  5 s       session.Options.StopWindow       5 s
//	RetryPeriod, while leading   2 s       session.Options.RenewInterval    Duration/3; RetryDelay after a failure
//	RetryPeriod, while waiting   2 s       none: a watch; AcquireInterval without one
//	ReleaseOnCancel              false     always, once the work has stopped
//	OnStartedLeading(ctx)                  the function of Run, with a token
//	OnStoppedLeading()                     what follows Run, or session.Session.OnLost
//	OnNewLeader(identity)                  none: lease.Inspect shows the owner
//	Identity                               session.Options.Owner
package controllerruntime
