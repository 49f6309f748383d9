package kubelease_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/histories"
	"github.com/fencedlease/lease/kubelease"
	"github.com/fencedlease/lease/observe"
)

// A wire sees the exchanges between clients and the API server. While it has a history, it adds the exchanges
// to that. It reads the requests and the answers themselves, so it depends only on the text form of a record.
type wire struct {
	history atomic.Pointer[histories.History]
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return trip(func(q *http.Request) (*http.Response, error) {
		h := w.history.Load()
		if h == nil || q.URL.Query().Has("watch") {
			return next.RoundTrip(q)
		}
		e := histories.Exchange{Call: time.Now(), Swap: q.Method == http.MethodPut}
		if e.Swap {
			text, err := io.ReadAll(q.Body)
			if err != nil {
				return nil, err
			}
			q.Body = io.NopCloser(bytes.NewReader(text))
			next := object(text)
			e.Old.Version, e.Next = next.ResourceVersion, recordOf(next)
		}
		res, err := next.RoundTrip(q)
		var text []byte
		if err == nil {
			text, err = io.ReadAll(res.Body)
			res.Body.Close()
			res.Body = io.NopCloser(bytes.NewReader(text))
		}
		e.Return, e.Err = time.Now(), err
		switch {
		case err != nil:
		case res.StatusCode < 300:
			shown := object(text)
			e.Snap = lease.Snapshot{Record: recordOf(shown), Version: shown.ResourceVersion}
		case res.StatusCode == http.StatusConflict || res.StatusCode == http.StatusNotFound:
			e.Err = lease.ErrConflict
		default:
			e.Err = fmt.Errorf("answered with %d: %s", res.StatusCode, text)
		}
		if e.Swap || e.Err == nil {
			h.Add(e)
		}
		return res, err
	})
}

func object(text []byte) *coordinationv1.Lease {
	o := new(coordinationv1.Lease)
	if err := json.Unmarshal(text, o); err != nil {
		panic(fmt.Sprintf("%s is on the wire: %v", text, err))
	}
	return o
}

// recordOf returns the record in an object that only this library writes.
func recordOf(o *coordinationv1.Lease) lease.Record {
	text, ok := o.Annotations[kubelease.Annotation]
	if !ok {
		version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("resourceVersion %q: %v", o.ResourceVersion, err))
		}
		return lease.Record{Epoch: version}
	}
	var saved struct{ Record observe.Kept }
	if err := json.Unmarshal([]byte(text), &saved); err != nil {
		panic(fmt.Sprintf("%s is on the wire: %v", text, err))
	}
	return saved.Record.Record
}
