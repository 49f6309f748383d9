package redislease

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// A Store has at most maxExchanges pipelines under way to one server, each over its own connection. A
// pipeline has at most maxBatch requests. A new request gets a pipeline of its own while fewer than
// fewExchanges pipelines with requests of its kind are under way.
const (
	maxExchanges = 8
	fewExchanges = 2
	maxBatch     = 128
)

type kind int

const (
	other   kind = iota // such as an acquire: waits for the urgent requests
	urgent              // changes or releases a lease that is held
	renewal             // is urgent, and shows how many renewals the server can do
	kinds
)

// A request is one or more commands that are sent together.
type request struct {
	kind     kind
	name     string // of the lease, if it has one
	server   *redis.Client
	commands [][]any
	asking   bool // the server does not have the slot of the keys yet
	wait     bool // the replicas must acknowledge the commands
}

type answer struct {
	sent           []*redis.Cmd // the commands with their results
	unacknowledged error        // too few replicas have acknowledged the commands
	err            error        // why there are no results
}

// A line has the requests that wait to be sent to one server. Each kind of request has a queue of its own, so
// that renewals do not wait for other requests.
type line struct {
	gate   *engine.Gate
	queues [kinds]engine.Batcher[request, answer]

	// The mutex of the Store protects these fields.
	underWay int       // the number of requests and exchanges that have not ended yet
	left     time.Time // when the last of them ended
	checked  time.Time // when the eviction policy of the server was last checked
}

func (s *Store) newLine(server *redis.Client) *line {
	l := &line{gate: engine.NewGate(min(maxExchanges, server.Options().PoolSize))}
	for k := range l.queues {
		q := &l.queues[k]
		q.Gate, q.Few, q.Most, q.Kind = l.gate, fewExchanges, maxBatch, engine.Request{Urgent: k != int(other)}
		if q.Kind.Others = 1; k == int(renewal) {
			q.Kind.Renewals, q.Kind.Others = 1, 0
		}
		q.Send = func(ctx context.Context, pass engine.Pass, all []request) ([]answer, error) {
			if len(all) > 1 {
				return s.exchange(ctx, pass, all), nil // ctx ends only at its deadline
			}
			answers, err := await(ctx, s, func() ([]answer, error) { return s.exchange(ctx, pass, all), nil })
			if err == lease.ErrClosed {
				pass.Leave(false) // nothing was sent
			}
			return answers, err
		}
	}
	return l
}

// forgetAfter is how long a line must have had no request before the Store may forget it. Whenever the Store
// sends a request to a new address, it forgets the lines of addresses that are not in use any more.
// Otherwise, a Store would keep the address of every server that a cluster ever had.
const forgetAfter = time.Hour

// The method enter returns the line of requests to a server. All clients of one server share a line. When the
// request has ended, the caller must call leave. The Store does not forget the line before that.
func (s *Store) enter(server *redis.Client) (l *line, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := server.Options().Addr
	l = s.lines[addr]
	if l == nil {
		maps.DeleteFunc(s.lines, func(_ string, l *line) bool { return l.underWay == 0 && time.Since(l.left) > forgetAfter })
		l = s.newLine(server)
		s.lines[addr] = l
	}
	l.underWay++
	return l, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.underWay--
		l.left = time.Now()
	}
}

func (s *Store) send(ctx context.Context, r request) (answer, error) {
	if !s.begin() {
		return answer{}, lease.ErrClosed
	}
	defer s.tasks.End()
	l, leave := s.enter(r.server)
	defer leave()
	a, err := l.queues[r.kind].Do(ctx, r.name, r)
	if err == nil {
		err = a.err
	}
	return a, err
}

// closeLines waits until every request has ended. The caller must make sure that send is no longer called.
func (s *Store) closeLines() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.lines))
	s.mu.Unlock()
	for _, l := range all {
		for k := range l.queues {
			l.queues[k].Close()
		}
	}
}
