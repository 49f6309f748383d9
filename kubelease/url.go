package kubelease

import (
	"context"
	"strings"

	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open kube:// URLs with [open.Store]. The cluster and the
// credentials are taken from KUBECONFIG, ~/.kube/config or the service account of the pod.
func init() { open.Register("kube", "kube://NAMESPACE", openURL) }

type opened struct{ *Store }

func (opened) Close() error { return nil }

func openURL(_ context.Context, url string) (open.Leases, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, lease.Permanent(err)
	}
	client, err := coordinationclient.NewForConfig(ClientConfig(config))
	if err != nil {
		return nil, lease.Permanent(err)
	}
	s, err := New(client, strings.TrimPrefix(url, "kube://"), nil)
	if err != nil {
		return nil, &open.URLError{Scheme: "kube", Err: err}
	}
	return opened{s}, nil
}
