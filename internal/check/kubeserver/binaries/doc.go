// Package binaries is the module that kube-apiserver and etcd are built from, for package kubeserver.
// Its tools choose their versions. It is a module of its own so that nothing else depends on them.
package binaries
