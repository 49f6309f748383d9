package kubelease

import (
	"context"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// confirmTimeout is how long Watch waits until the API server has confirmed a watch.
const confirmTimeout = 5 * time.Second

// Watch returns when the API server has confirmed the watch. After confirmTimeout, Watch returns an error
// that wraps context.DeadlineExceeded.
func (e *backend) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	key, err := objectName(name)
	if err != nil {
		return nil, err
	}
	watching, cancel, _ := e.server.Watch(ctx)
	impatient := time.AfterFunc(confirmTimeout, cancel)
	var events watch.Interface
	var last engine.Entry
	err = e.gate.Do(watching, engine.Request{}, func() (err error) {
		events, last, err = e.startWatch(watching, name, key)
		return err
	})
	if !impatient.Stop() && ctx.Err() == nil {
		if err == nil {
			events.Stop()
		}
		err = e.describeError(ctx, "watch", key, context.DeadlineExceeded)
	}
	if err != nil {
		cancel()
		return nil, err
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

// startWatch starts a watch of one object, and returns the lease in the object. The watch begins at the
// recent resourceVersion that readForWatch returns, because the API server drops old versions.
func (e *backend) startWatch(ctx context.Context, name, key string) (events watch.Interface, last engine.Entry, err error) {
	last, moment, err := e.readForWatch(ctx, name, key)
	if err != nil {
		return nil, last, err
	}
	events, err = e.client.Leases(e.namespace).Watch(ctx, metav1.ListOptions{FieldSelector: only(key), ResourceVersion: moment})
	return events, last, e.describeError(ctx, "watch", key, err)
}

// readForWatch reads one object with a list request, and returns the lease in the object and the
// resourceVersion of the list. If the object does not exist, readForWatch creates the object and returns its
// resourceVersion.
func (e *backend) readForWatch(ctx context.Context, name, key string) (found engine.Entry, moment string, err error) {
	objects, err := e.list(ctx, key, metav1.ListOptions{FieldSelector: only(key)})
	switch {
	case err != nil:
		return found, "", err
	case len(objects.Items) == 0:
		found, err = e.Load(ctx, name)
		return found, strconv.FormatInt(found.Revision, 10), err
	}
	found, err = e.entry(&objects.Items[0])
	return found, objects.ResourceVersion, err
}

func only(key string) string { return "metadata.name=" + key }

// The method seen handles an event of a watch. It stores the lease that the event contains, and reports
// whether the watch must send a signal.
func (e *backend) seen(name string, event watch.Event, last *engine.Entry) bool {
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
	e.cache.remember(object, next.Revision)
	e.note(name, next)
	return !isRenewal(before, next)
}

// isRenewal reports whether two successive entries of a lease differ only by a renewal, which needs no
// signal.
func isRenewal(old, next engine.Entry) bool {
	if old.Foreign && next.Foreign { // In an object without our record the epoch is the resourceVersion.
		old.Record.Epoch = next.Record.Epoch
	}
	return old.Record == next.Record && old.Record.State == lease.Leased && next.Left >= old.Left
}
