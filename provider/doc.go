// Package provider gives all parts of a program the same lease for the same kind, name and owner.
//
// A [Registry] is useful if the configuration of a program says which kind of lease to use, or if independent
// parts of a program need the same lease. The parts that get a lease from a Registry need not know how the
// lease is made. A Registry is similar to the LeaseProvider of Akka.
//
// All parts of a program that get the same lease from a Registry act as one holder, so several of these parts
// can work under the lease at the same time. If one part calls Release, or if a call of session.Run by one
// part returns, the lease is released for all of these parts. If only one part may hold the lease at a time,
// give each part a different owner.
//
// A kind is the name of one way to make leases. For example, all leases of one kind may be in the same store.
// In Akka, the configuration path has this role. A program can have several Registries, each with its own
// kinds and [Settings]. There is no global Registry.
package provider
