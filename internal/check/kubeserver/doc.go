// Package kubeserver runs a real Kubernetes API server over an etcd of its own, for tests. Both are
// processes that can be stopped, continued and killed. There is no kubelet, no scheduler and no
// controller, so nothing runs in the cluster.
package kubeserver
