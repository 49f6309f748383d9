// Package provider gives all parts of a program the same lease for the same kind, name and owner.
//
// A [Registry] is for a program that reads from its configuration which kind of lease to use, and
// for parts of a program that do not know each other and need the same lease: both ask the
// Registry, and neither knows how the lease is made. Akka's LeaseProvider does the same.
//
// Parts that ask for the same lease share one holder, and do not exclude each other. They also
// share its end: if one part calls Release, or its session.Run ends, the lease is released for all.
// Parts that must not release each other's lease need different owners. Then they exclude each
// other, as different processes do.
//
// A kind stands for a way to make leases, such as one authority. Akka calls it the configuration
// path. A Registry is a value: a program can have several, each with its own kinds and [Settings].
// There is no global registry.
package provider
