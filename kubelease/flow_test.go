package kubelease_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/kubelease"
)

// With the FlowSchema of the manifest, the reads of a service account do not delay its renewals. The
// API server has few seats, so that a few hundred reads at a time fill them.
func TestCompareFlowSchema(t *testing.T) {
	text, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var schema flowcontrolv1.FlowSchema
	if err := yaml.UnmarshalStrict([]byte(strings.Split(string(text), "---\n")[2]), &schema); err != nil {
		t.Fatal(err)
	}
	server := newServer(t, "--max-requests-inflight=12", "--max-mutating-requests-inflight=6")
	clientAs := func() coordinationclient.CoordinationV1Interface {
		c := kubelease.ClientConfig(config(server.Address, kubeserver.Admin))
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:default", Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		client, err := coordinationclient.NewForConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	admin := clientset(t, server.Address, kubeserver.Admin)
	allowServiceAccount(t, admin)

	const leases, readers, length = 20, 400, 5 * time.Second
	a := store(t, clientAs(), nil).Authority()
	for i := range leases {
		do(t, a, fmt.Sprint("lease", i), acquire(idA, time.Hour), 0)
	}
	// measure renews each lease once a second while the readers read, and returns the failures and the
	// longest renewal.
	measure := func() (failed, sent, readsRefused int64, longest time.Duration) {
		ctx, stop := context.WithTimeout(t.Context(), length)
		defer stop()
		var reading, renewing sync.WaitGroup
		var refusedReads, refused, renewals atomic.Int64
		for range readers / 20 {
			c := clientAs()
			for range 20 {
				reading.Go(func() {
					for ctx.Err() == nil {
						q := c.RESTClient().Get().Namespace(namespace).Resource("leases").MaxRetries(0)
						if q.Do(ctx).Error() != nil && ctx.Err() == nil {
							refusedReads.Add(1)
						}
					}
				})
			}
		}
		var mu sync.Mutex
		for i := range leases {
			renewing.Go(func() {
				for end := time.Now().Add(length - time.Second); time.Now().Before(end); {
					began := time.Now()
					_, err := a.Do(t.Context(), fmt.Sprint("lease", i), renew(idA))
					renewals.Add(1)
					if err != nil {
						refused.Add(1)
					}
					mu.Lock()
					longest = max(longest, time.Since(began))
					mu.Unlock()
				}
			})
		}
		renewing.Wait()
		stop()
		reading.Wait()
		return refused.Load(), renewals.Load(), refusedReads.Load(), longest
	}
	failed, sent, reads, longest := measure()
	t.Logf("without the FlowSchema: %d of %d renewals failed, the longest took %v; %d reads failed", failed, sent, longest.Round(time.Millisecond), reads)
	if _, err := admin.FlowcontrolV1().FlowSchemas().Create(t.Context(), &schema, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; { // until the API server uses the FlowSchema
		got, err := admin.FlowcontrolV1().FlowSchemas().Get(t.Context(), schema.Name, metav1.GetOptions{})
		if err == nil && len(got.Status.Conditions) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(got, err)
		}
	}
	with, all, reads, slowest := measure()
	t.Logf("with it: %d of %d renewals failed, the longest took %v; %d reads failed", with, all, slowest.Round(time.Millisecond), reads)
	if with > 0 {
		t.Errorf("%d of %d renewals failed", with, all)
	}
}

// allowServiceAccount gives the service account of the manifest its Role.
func allowServiceAccount(t *testing.T, admin *kubernetes.Clientset) {
	t.Helper()
	_, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: namespace}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
