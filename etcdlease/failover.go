package etcdlease

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/fencedlease/lease/internal/logqueue"
)

var errLearner = rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner)

// The method sending records that a request is being sent. The caller must call the returned function with
// the result.
func (e *backend) sending() (ended func(error)) {
	e.silence.sending()
	sent := e.server.Sending()
	return func(err error) {
		e.silence.ended(err)
		wrong := errors.Is(err, rpctypes.ErrNoLeader) || errors.Is(err, errLearner)
		e.server.Ended(sent, err, wrong, e.reconnect)
	}
}

// The method reconnect makes a client with a single endpoint connect again, because the endpoint may be a
// proxy in front of several members. Running requests stay on the old connection until they end. A client
// with several endpoints does not need this, because it uses them in turn.
func (e *backend) reconnect() bool {
	endpoints := e.client.Endpoints()
	if len(endpoints) != 1 {
		return false
	}
	e.client.SetEndpoints() // closes the connection
	e.client.SetEndpoints(endpoints...)
	return true
}

// The method watching returns a context for a watch. The context ends when the client leaves its member of
// the cluster. In the etcd client, all watches with the same metadata share one stream, and so stay on the
// old connection. Watches that begin after a reconnection therefore get metadata with a new number.
func (e *backend) watching(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel, number := e.server.Watch(ctx)
	if number > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "lease-connection", strconv.Itoa(number))
	}
	return ctx, cancel
}

// A silenceLogger logs a warning if etcd has left all requests unanswered for as long as
// [Options.SilenceWarning]. A period without answers is called a silence. A silence ends with the next
// answer, and causes at most one warning. A silence begins in these cases:
//
//   - A request is sent while there is no silence.
//   - A request is answered while other requests are under way.
//   - A request is sent after a pause of at least SilenceWarning without requests, and no request has failed
//     since the last answer. A request that its caller has canceled has not failed.
type silenceLogger struct {
	client *clientv3.Client
	after  time.Duration
	log    logqueue.Queue

	mu       sync.Mutex
	underWay int         // number of requests that have not ended
	since    time.Time   // when the silence began; zero if there is none
	idle     time.Time   // when the last request ended
	last     error       // the error of the last request that failed and was not canceled; nil if there is none
	warned   bool        // whether this silence has been logged
	timer    *time.Timer // calls overdue; runs while requests are under way
}

func (s *silenceLogger) sending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay++
	if s.underWay > 1 {
		return
	}
	if s.since.IsZero() || s.last == nil && time.Since(s.idle) >= s.after {
		s.since = time.Now()
	}
	left := s.after - time.Since(s.since)
	if left <= 0 { // all requests of the silence ended before the warning was due
		left = s.after
	}
	s.wait(left)
}

func (s *silenceLogger) wait(d time.Duration) {
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.overdue)
		return
	}
	s.timer.Reset(d)
}

func (s *silenceLogger) overdue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.underWay > 0 {
		s.warn()
	}
}

// The method ended records the result of a request. An error that etcd itself sent counts as an answer.
func (s *silenceLogger) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay--
	s.idle = time.Now()
	answered := err == nil || errors.As(err, new(rpctypes.EtcdError)) && !errors.Is(err, context.DeadlineExceeded)
	if answered {
		s.since, s.last, s.warned = time.Time{}, nil, false
	} else {
		if !errors.Is(err, context.Canceled) {
			s.last = err
		}
		s.warn()
	}
	switch {
	case s.underWay == 0:
		s.timer.Stop()
	case answered:
		s.since = s.idle
		s.wait(s.after)
	}
}

func (s *silenceLogger) warn() {
	silent := time.Since(s.since)
	if s.warned || silent < s.after {
		return
	}
	s.warned = true
	attributes := []any{"for", silent, "endpoints", strings.Join(s.client.Endpoints(), ", ")}
	if s.last != nil {
		attributes = append(attributes, "last", s.last)
	}
	attributes = append(attributes, "see", "does the client set DialKeepAliveTime? etcdlease.ClientConfig does")
	s.log.Log(slog.LevelWarn, "etcdlease: etcd does not answer", attributes...)
}
