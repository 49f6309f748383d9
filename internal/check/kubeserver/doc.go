// Package kubeserver runs a real Kubernetes API server over an etcd of its own, for tests. A test
// can stop, continue and kill the processes of the API server and of etcd. The cluster has no
// kubelet, no scheduler and no controller, so no workload runs in it.
package kubeserver
