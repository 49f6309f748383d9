// Package provider gives every part of a program the same lease for the same kind, name
// and owner, as Akka's LeaseProvider does: whoever asks for a lease need not know how it is
// made, and two who ask for the same one share a single incarnation instead of excluding
// each other. What one of them does with it, it does for all: a Release, and the end of a
// session.Run, end the incarnation for everybody who shares it. Parts that must not end each
// other's holding have owners of their own, and exclude each other.
//
// A kind stands for a way to make leases, such as one authority; Akka calls it the
// configuration path. A [Registry] is a value: a program has as many as it likes, each with
// its own kinds and [Settings]. Nothing registers itself.
package provider
