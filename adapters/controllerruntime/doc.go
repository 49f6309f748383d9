// Package controllerruntime runs the leader elections of controller-runtime and client-go with leases in any
// store, for example PostgreSQL or etcd. The controllers of several clusters can elect one common leader if
// all of them can reach this store.
//
// With a [Lock], client-go's elector stays in use, but stores its lease at a [lease.Authority]:
//
//	lock, err := controllerruntime.NewLock(store.Authority(), "indexer-leader", hostname+"_"+uuid, nil)
//	mgr, err := manager.New(config, manager.Options{
//		LeaderElection:                      true,
//		LeaderElectionResourceLockInterface: lock,
//	})
//
// Unlike the locks of client-go, a Lock rejects late answers of the authority, and never releases the lease
// of another elector. Two weaknesses of the elector remain. A suspended process notices the end of its lease
// only when it resumes. With LeaderElectionReleaseOnCancel, the elector releases the lease before the work of
// the leader has stopped.
//
// A [Runnable] is safer. It runs a function while its Session holds the lease. Turn off the leader election
// of the manager:
//
//	l, err := store.Lease("indexer-leader", nil)
//	r, err := controllerruntime.NewRunnable(l, func(ctx context.Context, tok lease.Token) error {
//		// work until ctx ends, and send tok with each write
//	}, nil)
//	err = mgr.Add(r)
//	err = mgr.AddHealthzCheck("lease", r.Healthz)
//
// The context of the function is canceled before another process can acquire the lease, even if answers of
// the authority are late or lost. The documentation of package session lists, in its section Conditions, the
// cases in which the context is canceled too late. In these cases, only the token protects the data from late
// writes.
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
