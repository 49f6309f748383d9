// Package binaries is the module from which package kubeserver builds kube-apiserver and etcd. Its go.mod
// lists them as tools, and so determines their versions. It is separate so that no other module needs them.
package binaries
