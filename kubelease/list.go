package kubelease

import (
	"context"
	"iter"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// List returns the leases whose names begin with prefix, including those of other programs. It reads
// all objects of the namespace, 500 at a time.
//
// A Store counts down the remaining time of a lease from when it first sees the current version. If
// that was written long before, the lease has less time left than List reports, but never more. A lease
// whose holder is dead is reported as leased until the countdown reaches zero, and then as expired. To
// find out which leases are still renewed, call List twice, and wait in between for the longest
// duration of the listed leases.
//
// Once the Store remembers [Options.Names] names, it does not count down for further leases that it
// sees only in lists. Every list then shows such a lease as leased, even if its holder is dead.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[lease.Entry, error] {
	return s.observed.List(ctx, prefix)
}

// pageSize is the number of objects that List reads in one request.
const pageSize = 500

// List reads the objects in pages. All pages are from the snapshot that the API server takes for the first.
// If the API server drops that before List has read all pages, List reads the rest from a newer snapshot.
func (e *backend) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return engine.List(ctx, prefix, func(yield func(engine.NamedEntry, error) bool) error {
		o := metav1.ListOptions{Limit: pageSize}
		for {
			objects, err := e.page(ctx, o)
			if token := continueToken(err); token != "" && token != o.Continue {
				o.Continue = token
				continue
			}
			if err != nil {
				return e.describeError(ctx, "list", prefix+"*", err)
			}
			for i := range objects.Items {
				object := &objects.Items[i]
				name, ok := leaseName(object.Name)
				if !ok || !strings.HasPrefix(name, prefix) {
					continue
				}
				found, err := read(object)
				if err != nil {
					err = e.describeObjectError(object.Name, err)
				}
				if !yield(engine.NamedEntry{Name: name, Entry: found}, err) {
					return nil
				}
			}
			if o.Continue = objects.Continue; o.Continue == "" {
				return nil
			}
		}
	})
}

// page reads one page when the gate lets it.
func (e *backend) page(ctx context.Context, o metav1.ListOptions) (objects *coordinationv1.LeaseList, err error) {
	err = e.gate.Do(ctx, engine.Request{}, func() (err error) {
		objects, err = e.list(ctx, o)
		return err
	})
	return objects, err
}

// continueToken returns the token with which a list can continue from a newer snapshot, or "" if err
// contains none. The token is in the error of an API server that has dropped the old snapshot of the list.
func continueToken(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.Status().Continue
}
