package etcdlease

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A silenceLogger logs a warning if etcd does not answer any request for a certain time. It logs
// one warning for each such period.
type silenceLogger struct {
	after  time.Duration
	logger *slog.Logger

	mu     sync.Mutex
	since  time.Time // when the first unanswered request was sent; zero if there is none
	warned bool
}

// sending records that a request is being sent.
func (s *silenceLogger) sending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
}

// ended records the result of a request. An error that etcd itself sent counts as an answer.
func (s *silenceLogger) ended(client *clientv3.Client, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || errors.As(err, new(rpctypes.EtcdError)) && !errors.Is(err, context.DeadlineExceeded) {
		s.since, s.warned = time.Time{}, false
		return
	}
	if silent := time.Since(s.since); !s.warned && !s.since.IsZero() && silent >= s.after {
		s.warned = true
		s.logger.Warn("etcdlease: etcd does not answer", "for", silent, "endpoints", strings.Join(client.Endpoints(), ", "),
			"last", err, "see", "does the client set DialKeepAliveTime? etcdlease.ClientConfig does")
	}
}
