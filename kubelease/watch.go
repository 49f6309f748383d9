package kubelease

import (
	"context"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/observe"
)

// confirmation is the timeout for starting a watch.
const confirmation = 5 * time.Second

// Watch returns once the server has confirmed a watch. The watch starts at the resourceVersion of a
// list that Watch has just read. The server may already have dropped the resourceVersion of the
// object itself.
func (e *engine) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key, err := objectName(name)
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	impatient := time.AfterFunc(confirmation, cancel)
	defer impatient.Stop()
	last, moment, err := e.begin(watching, name, key)
	if err != nil {
		cancel()
		return nil, err
	}
	events, err := e.client.Leases(e.namespace).Watch(watching, metav1.ListOptions{FieldSelector: only(key), ResourceVersion: moment})
	if err == nil && !impatient.Stop() {
		events.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, e.explain("watch", key, err)
	}
	signals := make(chan struct{}, 1)
	go func() {
		defer cancel()
		defer close(signals)
		defer events.Stop()
		for event := range events.ResultChan() {
			if event.Type == watch.Error { // 410 Gone: the server has dropped that version
				return
			}
			if e.seen(name, event, &last) {
				select {
				case signals <- struct{}{}:
				default:
				}
			}
		}
	}()
	return signals, nil
}

// begin reads an object and returns the resourceVersion of the whole list at that time. If the
// object does not exist, begin creates it.
func (e *engine) begin(ctx context.Context, name, key string) (found observe.Entry, moment string, err error) {
	objects, err := e.client.Leases(e.namespace).List(ctx, metav1.ListOptions{FieldSelector: only(key)})
	switch {
	case err != nil:
		return found, "", e.explain("list", key, err)
	case len(objects.Items) == 0:
		found, err = e.Load(ctx, name)
		return found, strconv.FormatInt(found.Revision, 10), err
	}
	found, err = e.entry(&objects.Items[0])
	return found, objects.ResourceVersion, err
}

// only returns a field selector for one object.
func only(key string) string { return "metadata.name=" + key }

// seen records the lease of an event. It reports whether to send a signal for the event.
func (e *engine) seen(name string, event watch.Event, last *observe.Entry) bool {
	object, ok := event.Object.(*coordinationv1.Lease)
	if !ok || event.Type == watch.Deleted {
		return true
	}
	next, err := read(object)
	if err != nil {
		return true
	}
	before := *last
	*last = next
	e.memory.keep(object, next.Revision)
	e.note(name, next)
	return !continues(before, next)
}

// continues reports whether next differs from before only by a renewal. A waiter cannot do anything
// with such a change.
func continues(before, next observe.Entry) bool {
	if before.Foreign && next.Foreign { // In an object without our record the epoch is the resourceVersion.
		before.Record.Epoch = next.Record.Epoch
	}
	return before.Record == next.Record && before.Record.State == lease.Leased && next.Left >= before.Left
}
