// Package binaries is the module from which package kubeserver builds kube-apiserver and etcd. Its
// go.mod lists both as tools and so determines their versions. It is a separate module so that no
// other module depends on them.
package binaries
