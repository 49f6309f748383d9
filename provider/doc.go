// Package provider gives all parts of a program the same lease for the same kind, name and owner.
//
// A [Registry] is useful for a program whose configuration says which kind of lease to use. A
// Registry is also useful if independent parts of a program need the same lease. Parts that get the
// lease from the Registry do not have to know how the lease is made. The LeaseProvider of Akka is
// similar.
//
// Parts of a program that get the same lease share one holder, and do not exclude each other. If
// one part calls Release, or if its session.Run returns, the lease is released for all parts that
// share it. Parts that must not release each other's lease need different owners. Parts with
// different owners exclude each other, as different processes do.
//
// A kind is the name of a way to make leases, for example with one particular authority. In Akka,
// the configuration path has this role. A program can have several Registries, each with its own
// kinds and [Settings]. There is no global Registry.
package provider
