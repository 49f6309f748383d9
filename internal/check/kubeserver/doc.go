// Package kubeserver runs a real Kubernetes API server over an etcd of its own, for tests, which can stop,
// continue and kill the two processes. The cluster has no kubelet, no scheduler and no controller, so no
// workload runs in it.
package kubeserver
