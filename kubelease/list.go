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

// List returns the leases whose names begin with prefix, by reads of some hundred objects each, of
// all the objects in the namespace. It shows leases of other programs, too. What a lease has left is
// an upper bound: a Store that sees a lease for the first time counts from there. So a lease whose
// holder is dead is shown as leased until this Store has seen it for as long as it lasts. List again
// after that time to see which leases are renewed.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// page is how many objects a list reads at once.
const page = 500

// List reads the objects a page at a time. All pages show one moment, at the beginning of the list,
// unless the server has forgotten that; then the rest is of a later one.
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

// continuation returns the token for the rest of a list that takes longer than the server remembers,
// or "".
func continuation(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.Status().Continue
}
