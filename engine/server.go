package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Server decides when a client should close its connections and connect again, because the new connections
// may reach a better server. A server that was cut off from the others, is silent or has been demoted can
// keep its connections open. The zero Server is ready to use. A Server is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	events   uint64 // how many answers have arrived, and how often the client has left a server
	answered bool   // whether an answer has arrived since the client last left a server
	left     time.Time
	number   int
	watches  context.Context
	end      context.CancelFunc // ends watches
}

// A Sent is a request that has been sent: see [Server.Sending].
type Sent struct {
	at     time.Time
	events uint64 // the events of the Server when the request was sent
}

// Sending records that a request is being sent. Pass the result to [Server.Ended].
func (s *Server) Sending() Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Sent{time.Now(), s.events}
}

// leastWait is how long a client must have waited in vain before it leaves its server. A request with a
// shorter deadline may have ended before the server could answer.
const leastWait = 250 * time.Millisecond

// connectPatience is how long a new connection may take to its first answer. If everything is slow, a client
// that connects again after each request would never get an answer.
const connectPatience = 3 * time.Second

// The method Ended must be called with the result of each request. It decides whether the client leaves the
// server. The parameter wrong must be true if the server has answered that it cannot serve. In this case, or
// if the request got no answer in time, the method Ended calls the function leave. This function must close
// the connections and must not call the Server. The method Ended does not call the function leave if the
// server has answered a later request, because such a server is only slow. The method also does not call the
// function if another request has already closed this connection.
//
// If the function leave returns true, the contexts of all watches end, so that the watches begin again at the
// next server. The contexts do not end a second time until a server has answered a request.
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

// Watch returns a context for a watch, which ends when the client leaves the server. Watch also returns how
// often the client has left a server.
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
