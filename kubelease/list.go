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

// List returns the leases whose names begin with prefix. List reads all objects of the namespace,
// 500 at a time. The result includes the leases of other programs.
//
// A Store starts to count down the remaining time of a lease when it first sees the current version
// of the lease. If the current version was written long before the Store first saw it, the lease
// has less time left than the Store counts. The lease never has more time left than List reports.
// List can report a lease as leased although its holder is dead. If the holder of a lease is dead,
// List reports the lease as expired as soon as the Store has counted the remaining time down to
// zero. To find out which leases are still being renewed, call List, wait for the longest duration
// of the listed leases, and call List again.
//
// If the Store already remembers [Options.Names] names, it starts no countdown for a lease that it
// sees only in lists. Every list then shows such a lease as leased, even if its holder is dead.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// pageSize is the number of objects that List reads in one request.
const pageSize = 500

// List reads the objects in pages. All pages of a list are from the snapshot that the API server
// takes for the first page. If the API server drops the snapshot before List has read all pages,
// List reads the rest of the pages from a newer snapshot.
func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[observe.NamedEntry, error] {
	return func(yield func(observe.NamedEntry, error) bool) {
		o := metav1.ListOptions{Limit: pageSize}
		for {
			objects, err := e.list(ctx, o)
			if token := continueToken(err); token != "" && token != o.Continue {
				o.Continue = token
				continue
			}
			if err != nil {
				yield(observe.NamedEntry{}, e.explain(ctx, "list", prefix+"*", err))
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

// continueToken returns the token with which a list can continue from a newer snapshot. If the API
// server has dropped the old snapshot of the list, the error err from the API server contains a
// token for a newer snapshot. If err contains no token, continueToken returns the empty string.
func continueToken(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.Status().Continue
}
