package kubelease

import (
	"context"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// List returns the leases whose names begin with prefix. It reads all objects of the namespace, 500
// at a time. The result includes the leases of other programs.
//
// The remaining time of a listed lease is an upper bound, because a Store starts to count when it
// sees a lease for the first time. List may therefore report a lease as leased although its holder
// is dead. List reports such a lease as expired once a whole duration has passed since this Store
// first saw the lease. To find out which leases are renewed, call List a second time after the
// longest duration.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// page is the number of objects that List reads in one request.
const page = 500

// List reads the objects in pages. All pages are from one snapshot, which the API server takes at
// the first page. If the list takes so long that the server has dropped that snapshot, the
// remaining pages are from a newer one.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		o := metav1.ListOptions{Limit: page}
		for {
			objects, err := e.client.Leases(e.namespace).List(ctx, o)
			if token := continuation(err); token != "" && token != o.Continue {
				o.Continue = token
				continue
			}
			if err != nil {
				yield(observe.NamedEntry{}, e.explain("list", prefix+"*", err))
				return
			}
			for i := range objects.Items {
				object := &objects.Items[i]
				name, ok := leaseName(object.Name)
				if !ok || !strings.HasPrefix(name, prefix) {
					continue
				}
				found, err := read(object)
				if err != nil {
					err = e.explainObject(object.Name, err)
				}
				if !yield(observe.NamedEntry{Name: name, Entry: found}, err) {
					return
				}
			}
			if o.Continue = objects.Continue; o.Continue == "" {
				return
			}
		}
	}
}

// continuation returns the token with which a list can continue after the server has dropped its
// snapshot. continuation returns the empty string for nil and for any other error.
func continuation(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.Status().Continue
}
