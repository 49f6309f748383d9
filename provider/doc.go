// Package provider gives all parts of a program the same lease for the same kind, name and owner.
//
// A [Registry] is useful for a program whose configuration says which kind of lease to use. A
// Registry is also useful if independent parts of a program need the same lease. These parts get
// the lease from the Registry, and do not have to know how the lease is made. The LeaseProvider of
// Akka is similar.
//
// Parts of a program that get the same lease share one holder, and do not exclude each other. If
// one of these parts calls Release, or if its session.Run returns, the lease is released for all of
// them. Parts that must not release each other's lease need different owners. Parts with different
// owners exclude each other, as different processes do.
//
// A kind is the name of one way to make leases, for example at one particular authority. In Akka,
// the configuration path has this role. A program can have several Registries, each with its own
// kinds and [Settings]. There is no global Registry.
package provider
