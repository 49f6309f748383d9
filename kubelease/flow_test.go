package kubelease_test

import (
	"context"
	"errors"
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
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
	"github.com/fencedlease/lease/kubelease"
)

// With the FlowSchema of the manifest, the reads of a service account do not delay its renewals. The
// API server has few seats, so that a few hundred reads at a time fill them.
func TestCompareFlowSchema(t *testing.T) {
	_, _, schema := manifest(t)
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
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: namespace}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	const leases, readers, length = 20, 400, 5 * time.Second
	a := store(t, clientAs(), nil).Authority()
	for i := range leases {
		do(t, a, fmt.Sprint("lease", i), acquire(idA, time.Hour), 0)
	}
	// measure renews each lease again and again while the readers read, and returns the number of failures.
	measure := func(what string) (failed int64) {
		ctx, stop := context.WithTimeout(t.Context(), length)
		defer stop()
		var all sync.WaitGroup
		for range readers / 20 {
			c := clientAs()
			for range 20 {
				all.Go(func() {
					for ctx.Err() == nil {
						_ = c.RESTClient().Get().Namespace(namespace).Resource("leases").MaxRetries(0).Do(ctx).Error()
					}
				})
			}
		}
		var renewals, refused, longest atomic.Int64
		for i := range leases {
			all.Go(func() {
				for end := time.Now().Add(length - time.Second); time.Now().Before(end); {
					began := time.Now()
					if _, err := a.Do(t.Context(), fmt.Sprint("lease", i), renew(idA)); err != nil {
						refused.Add(1)
					}
					renewals.Add(1)
					longest.Store(max(longest.Load(), int64(time.Since(began)))) // roughly
				}
			})
		}
		all.Wait()
		t.Logf("%s the FlowSchema: %d of %d renewals failed, and one took %v", what, refused.Load(), renewals.Load(), time.Duration(longest.Load()).Round(time.Millisecond))
		return refused.Load()
	}
	measure("without")
	if _, err := admin.FlowcontrolV1().FlowSchemas().Create(t.Context(), schema, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	shorthand.Eventually(t, "the API server uses the FlowSchema", func(ctx context.Context) error {
		got, err := admin.FlowcontrolV1().FlowSchemas().Get(ctx, schema.Name, metav1.GetOptions{})
		if err == nil && len(got.Status.Conditions) == 0 {
			err = errors.New("it has no conditions")
		}
		return err
	})
	if failed := measure("with"); failed > 0 {
		t.Errorf("%d renewals failed", failed)
	}
}

// manifest reads rbac.yaml.
func manifest(t *testing.T) (*rbacv1.Role, *rbacv1.RoleBinding, *flowcontrolv1.FlowSchema) {
	t.Helper()
	text, err := os.ReadFile("rbac.yaml")
	role, binding, schema := new(rbacv1.Role), new(rbacv1.RoleBinding), new(flowcontrolv1.FlowSchema)
	all := []any{role, binding, schema}
	for i, part := range strings.Split(string(text), "---\n") {
		err = errors.Join(err, yaml.UnmarshalStrict([]byte(part), all[i]))
	}
	if err != nil {
		t.Fatal(err)
	}
	return role, binding, schema
}
