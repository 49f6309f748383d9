package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Server decides when a client should close its connections and connect again, because the new connections
// may reach a better server. A server can keep its connections open even if it is cut off from the other
// servers, does not answer, or is no longer the primary. The zero Server is ready to use. A Server is safe
// for concurrent use.
type Server struct {
	mu       sync.Mutex
	events   uint64 // how many answers have arrived, and how often the client has left a server
	answered bool   // whether an answer has arrived since the client last left a server
	left     time.Time
	number   int
	watches  context.Context
	end      context.CancelFunc // ends watches
}

// A Sent value describes a request that the client has sent: see [Server.Sending].
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

// A client does not leave a new connection within this time, even if no request gets an answer. Otherwise a
// client with a slow network could connect again after each request, and never get an answer.
const connectPatience = 3 * time.Second

// The method Ended must be called with the result of each request. It decides whether the client leaves the
// server. If the server has answered that it cannot serve requests, the caller must set the third parameter
// to true. In this case, or if the request got no answer in time, the method Ended calls the function that is
// its last parameter. This function must close the connections and must not call the Server. If the server
// has answered a later request, Ended does not call the function, because such a server is only slow. If
// another request has already closed this connection, Ended does not call the function either.
//
// If the function returns true, Ended cancels the contexts of all watches, so that the watches begin again at
// the next server. If this server does not answer either, and the client leaves it too, the new watches are
// not canceled.
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
