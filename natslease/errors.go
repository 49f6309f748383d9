package natslease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A call is one request to NATS. The fields of a call describe the request in the text of an error.
type call struct {
	*backend
	what, key, subject string // a subject that ends with a dot is a prefix of the full subject
	before             error  // the last error of the connection before the request
	sent               engine.Sent
}

func (e *backend) call(what, key, subject string) call {
	return call{e, what, key, subject, e.nc.LastError(), e.server.Sending()}
}

// The method failed returns nil if err is nil. Otherwise the method adds the name of the key or bucket to the
// error of NATS. For some errors, the method also adds advice. If no retry can succeed, the result is a
// [lease.PermanentError]. Unless a permission is missing, the method also calls ended, which can make the
// client reconnect.
func (c call) failed(err error) error {
	if err == nil {
		return nil
	}
	about := fmt.Sprintf("bucket %q", c.bucket)
	if c.key != "" {
		about = fmt.Sprintf("key %q of %s", c.key, about)
	}
	if advice, violation := c.missingPermission(err); violation != nil {
		return lease.Permanent(fmt.Errorf("natslease: %s %s: %w: %w; %s", c.what, about, err, violation, advice))
	}
	c.ended(err)
	advice, permanent := c.advice(err)
	return engine.WithAdvice(fmt.Errorf("natslease: %s %s: %w", c.what, about, err), advice, permanent)
}

func (c call) answered() { c.server.Ended(c.sent, nil, false, nil) }

// The method ended handles the error of a request. If the current server does not answer or cannot reach the
// leader, the method makes the client connect to its next server: see [engine.Server].
func (c call) ended(err error) {
	wrong := withoutLeader(err)
	switch {
	case isTimeout(err):
		err = context.DeadlineExceeded
	case !wrong && !errors.As(err, new(*jetstream.APIError)):
		return // not an answer
	}
	c.server.Ended(c.sent, err, wrong, func() bool {
		return c.nc.Opts.AllowReconnect && c.nc.IsConnected() && c.nc.ForceReconnect() == nil
	})
}

// withoutLeader reports whether the server has answered that it cannot reach the leader.
func withoutLeader(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return refused.ErrorCode == errNotAvailable || refused.ErrorCode == errNotLeader
	}
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders)
}

// isTimeout reports whether err means that no answer came in time.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
}

// missingPermission finds out whether the request got no answer because the user has no permission for it.
// NATS reports a missing permission only as an error of the connection. missingPermission then returns that
// error, and advice that names the permission. Otherwise the returned violation is nil.
func (c call) missingPermission(err error) (advice string, violation error) {
	last := c.nc.LastError()
	if !isTimeout(err) || !errors.Is(last, nats.ErrPermissionViolation) {
		return "", nil
	}
	_, text, _ := strings.Cut(last.Error(), "Permissions Violation for ")
	subscribed, subscription := strings.CutPrefix(text, "Subscription to ")
	inboxes := inboxPrefix(c.nc)
	switch {
	case subscription && strings.HasPrefix(subscribed, `"`+inboxes): // one subscription of the connection receives all answers
		return fmt.Sprintf("the user needs the permission to subscribe to %q", inboxes+">"), last
	case !subscription && last != c.before && strings.Contains(text, `"`+c.subject):
		return fmt.Sprintf("the user needs the permission to publish to %q", c.permission()), last
	}
	return "", nil
}

// inboxPrefix returns the prefix of the subjects on which the client receives its answers.
func inboxPrefix(nc *nats.Conn) string {
	if nc.Opts.InboxPrefix != "" {
		return nc.Opts.InboxPrefix + "."
	}
	return nats.InboxPrefix
}

// The method permission returns the subject for which the user needs permission to publish.
func (c call) permission() string {
	if keys := c.publishPrefix + c.backend.subject(""); strings.HasPrefix(c.subject, keys) {
		return keys + ">"
	}
	if strings.HasSuffix(c.subject, ".") { // the name of a consumer follows
		return c.subject + ">"
	}
	return c.subject
}

// The method advice returns a text that says how to fix the cause of an error. It also reports whether the
// error recurs until a person has fixed the cause.
func (c call) advice(err error) (advice string, permanent bool) {
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, context.Canceled):
		return "", false
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Sprintf("make the bucket: nats kv add %s --replicas 3, or CreateKeyValue of natslease.BucketConfig", c.bucket), true
	case errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return "enable JetStream in the server, and for the account of this user", true
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return fmt.Sprintf("no server took the request: check that the bucket %s exists, that JetStream is enabled, and that a majority of the bucket's servers is up", c.bucket), false
	case errors.Is(err, nats.ErrConnectionClosed):
		return "the connection was closed, and never comes back: check that the program does not close it, and connect with natslease.ConnectOptions", true
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrDisconnected):
		return fmt.Sprintf("there is no connection to %s just now: check that NATS can be reached", strings.Join(c.nc.Servers(), ", ")), false
	case isTimeout(err):
		return c.timeoutAdvice(), false
	case errors.As(err, &refused) && (refused.ErrorCode == errStoreFailed || refused.ErrorCode == errInsufficientResources || refused.ErrorCode == errAccountResources):
		return "the bucket, the account or the disk is full: raise the limit", false
	case errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return "the bucket's limit of a value's size is too small for a record: remove it", true
	case errors.Is(err, jetstream.ErrMaximumConsumersLimit):
		return "each watch needs a consumer: raise the limit", false
	}
	return "", false
}

// Package jetstream does not define these error codes of JetStream.
const (
	errNotAvailable          jetstream.ErrorCode = 10008
	errNotLeader             jetstream.ErrorCode = 10009
	errInsufficientResources jetstream.ErrorCode = 10023
	errAccountResources      jetstream.ErrorCode = 10002
	errStoreFailed           jetstream.ErrorCode = 10077
)

// maxDetection is the longest time that a client should need to detect that its connection has died silently.
// If the client needs longer, the text of a timeout error recommends ConnectOptions.
const maxDetection = 15 * time.Second

// timeoutAdvice returns the advice for a request that got no answer in time.
func (c call) timeoutAdvice() string {
	advice := fmt.Sprintf("no answer in time from %s: check that NATS can be reached, and that a majority of the bucket's servers is up", strings.Join(c.nc.Servers(), ", "))
	if least := 2 * c.nc.Opts.PingInterval; least > maxDetection {
		advice += fmt.Sprintf("; this client needs more than %v to notice that a connection died silently: connect with natslease.ConnectOptions", least)
	}
	return advice
}
