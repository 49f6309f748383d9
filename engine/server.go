package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Server decides when a client should leave the server to which its connection leads. A server that was cut
// off, is silent or has been demoted can keep its connections open, while a new connection would reach a better
// server. The zero value is ready to use. The methods may be called by several goroutines at once.
type Server struct {
	mu       sync.Mutex
	events   uint64 // counts the answers, and the times that the client connected again
	answered bool   // since it connected again
	left     time.Time
	number   int
	watches  context.Context
	end      context.CancelFunc // ends watches
}

// A Sent is a request that is under way: see [Server.Sending].
type Sent struct {
	at     time.Time
	events uint64 // of the Server
}

// Sending records that a request is being sent. Pass the result to [Server.Ended].
func (s *Server) Sending() Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Sent{time.Now(), s.events}
}

// leastWait is the shortest wait without an answer after which a client leaves its server. A request
// with a shorter deadline may have ended before the server could answer.
const leastWait = 250 * time.Millisecond

// connectPatience is how long a connection has for its first answer. Where everything is slow, a client that
// connects again after each request would never get an answer.
const connectPatience = 3 * time.Second

// Ended records the result of a request, and decides whether to leave the server. The parameter wrong means
// that the server has answered that it cannot serve. Ended calls leave, which must close the connections and
// must not call the Server, if wrong is true or if the request got no answer in time. It does not call leave if
// the server has answered a later request, because then it is only slow, or if another request has already left
// this connection.
//
// If leave returns true, the contexts of all watches end, so that they begin again at the next server. They do
// not end a second time until a server has answered a request.
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

// Watch returns a context for a watch, which ends when the client leaves the server. The number says how often
// the client has left a server.
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
