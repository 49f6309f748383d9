// Package binaries is the module from which package kubeserver builds kube-apiserver and etcd. The
// go.mod of the module lists kube-apiserver and etcd as tools, and so determines their versions.
// The module is separate so that no other module depends on kube-apiserver or etcd.
package binaries
