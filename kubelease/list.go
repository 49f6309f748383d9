package kubelease

import (
	"context"
	"errors"
	"iter"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fencedlease/lease/engine"
)

const pageSize = 500

// List reads the objects in pages, all from the snapshot that the API server takes for the first page. If the
// API server drops this snapshot before List has read all pages, List reads the other pages from a newer
// snapshot.
func (e *backend) List(ctx context.Context, prefix string) iter.Seq2[engine.NamedEntry, error] {
	return engine.List(ctx, prefix, func(yield func(engine.NamedEntry, error) bool) error {
		o := metav1.ListOptions{Limit: pageSize}
		for {
			var objects *coordinationv1.LeaseList
			err := e.gate.Do(ctx, engine.Request{}, func() (err error) {
				objects, err = e.list(ctx, prefix+"*", o)
				return err
			})
			if token := continueToken(err); token != "" && token != o.Continue {
				o.Continue = token
				continue
			}
			if err != nil {
				return err
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

// continueToken returns the token with which a list can continue from a newer snapshot. An API server sends
// this token in the error that it returns after it has dropped the old snapshot. For any other error,
// continueToken returns "".
func continueToken(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsResourceExpired(err) {
		return ""
	}
	return status.Status().Continue
}
