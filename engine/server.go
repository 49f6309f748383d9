package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Server is what one connection of a client leads to. It decides when the client should leave it, because a
// server may be cut off or silent, or may have been demoted, while its connections live on and only new ones
// reach a better one. The zero value is ready to use. Its methods may be
// called by several goroutines at once.
type Server struct {
	mu       sync.Mutex
	events   uint64 // counts the answers, and the times that the client connected again
	answered bool   // since it connected again
	left     time.Time
	number   int
	watches  context.Context
	end      context.CancelFunc // ends watches
}

// A Sent request is under way.
type Sent struct {
	at     time.Time
	events uint64 // of the Server
}

// Sending records that a request is being sent.
func (s *Server) Sending() Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Sent{time.Now(), s.events}
}

// leastWait is the shortest wait without an answer after which a client leaves its server. A request with a
// shorter deadline may have been given up too early.
const leastWait = 250 * time.Millisecond

// connectPatience is how long a connection has for its first answer. Where everything is slow, a client that
// connects again after each request would never get an answer.
const connectPatience = 3 * time.Second

// Ended records the result of a request. It calls leave, which must not call the Server, if the request got
// no answer in time or if wrong is set, which means that the server says it cannot serve. A server that has
// answered a later request is only slow, and not left. Of all requests that fail on one connection, only
// the first leaves it. If leave returns true, all watches end, unless nothing was answered since they last
// did: then there is no better server for them yet.
func (s *Server) Ended(sent Sent, err error, wrong bool, leave func() bool) {
	silent := errors.Is(err, context.DeadlineExceeded)
	s.mu.Lock()
	defer s.mu.Unlock()
	early := time.Since(sent.at) < leastWait || !s.answered && time.Since(s.left) < connectPatience
	switch {
	case silent && early, errors.Is(err, context.Canceled):
	case !silent && !wrong:
		s.answered = true
		s.events++
	case s.events == sent.events && leave():
		s.events++
		s.left = time.Now()
		if s.answered && s.end != nil {
			s.end()
			s.watches, s.end = nil, nil
			s.number++
		}
		s.answered = false
	}
}

// Watch returns a context for a watch, which ends when the client leaves the server. The number says how
// often watches have ended.
func (s *Server) Watch(ctx context.Context) (watching context.Context, cancel context.CancelFunc, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.watches, s.end = context.WithCancel(context.Background())
	}
	watching, stop := context.WithCancel(ctx)
	unlink := context.AfterFunc(s.watches, stop)
	return watching, func() { unlink(); stop() }, s.number
}
