// Package shorthand has short forms for our tests, mostly of stores: requests, waits and comparisons.
package shorthand

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// IDA and IDB are the IDs of two clients.
var (
	IDA = vectors.MustParseID("aaaaaaaa-0000-4000-8000-000000000001")
	IDB = vectors.MustParseID("bbbbbbbb-0000-4000-8000-000000000002")
)

// Acquire returns a request of the owner worker-1.
func Acquire(id lease.ID, d time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionAcquire, Proposed: id, Owner: "worker-1", Duration: d}
}

func Renew(id lease.ID) lease.Request   { return lease.Request{Action: lease.ActionRenew, ID: id} }
func Release(id lease.ID) lease.Request { return lease.Request{Action: lease.ActionRelease, ID: id} }

func Break(grace time.Duration) lease.Request {
	return lease.Request{Action: lease.ActionBreak, Period: lease.Grace(grace)}
}

// Do sends a request, which must be granted if want is 0, and otherwise be refused with the code want.
func Do(t testing.TB, a lease.Authority, name string, req lease.Request, want lease.Code) lease.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // long enough for a busy machine
	defer cancel()
	res, err := a.Do(ctx, name, req)
	if lease.CodeOf(err) != want || want == 0 && err != nil {
		t.Fatalf("%v of %q: %v, want code %v", req.Action, name, err, want)
	}
	return res
}

// Eventually calls f, with a time limit of two seconds for each call, until f succeeds.
func Eventually(t testing.TB, what string, f func(context.Context) error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // a real engine
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := f(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// Within receives from the channel of a watch until it has a signal or, if open is false, until it is
// closed. It returns false if the channel is closed first, or after 20 s.
func Within(signals <-chan struct{}, open bool) bool {
	deadline := time.After(20 * time.Second)
	for {
		select {
		case _, isOpen := <-signals:
			if isOpen == open || !isOpen {
				return isOpen == open
			}
		case <-deadline:
			return false
		}
	}
}

// Says requires that err wraps cause, and that the text of err contains the words.
func Says(t testing.TB, err, cause error, words ...string) {
	t.Helper()
	if err == nil || cause != nil && !errors.Is(err, cause) {
		t.Errorf("%v, want one because of %v", err, cause)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// Permanent reports whether err says that no retry can help.
func Permanent(err error) bool { return errors.As(err, new(*lease.PermanentError)) }
