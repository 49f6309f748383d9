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

// silence notices that etcd does not answer for longer than a lease lasts, and warns once for each
// time that it does so.
type silence struct {
	after  time.Duration
	logger *slog.Logger

	mu     sync.Mutex
	since  time.Time // the first sending that was not answered; zero: the last one was
	warned bool
}

// sending notes that a request is sent.
func (s *silence) sending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
}

// ended notes how a request ended. An error that etcd itself sent is an answer.
func (s *silence) ended(client *clientv3.Client, err error) {
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
