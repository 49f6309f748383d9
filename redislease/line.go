package redislease

import (
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// At most maxExchanges requests are under way to one server, each over a connection of its own. At most maxBatch
// requests of callers share one. While fewer than fewExchanges of a kind are under way, each is sent by itself.
const (
	maxExchanges = 8
	fewExchanges = 2
	maxBatch     = 128
)

// A kind says how urgent a request is.
type kind int

const (
	other   kind = iota // waits until the server has time for it
	urgent              // changes a lease that is held
	renewal             // is urgent, and counts as what the server must be able to do
	kinds
)

// A request is one or more commands that are sent together.
type request struct {
	kind     kind
	name     string // of the lease, if it has one
	server   *redis.Client
	commands [][]any
	wait     bool // the replicas must acknowledge the commands
}

// An answer is that to one request.
type answer struct {
	sent           []*redis.Cmd // the commands with their results
	unacknowledged error        // the answer to WAIT, if it is not enough
	err            error        // there are no results
}

// A line has the requests that wait for one server. Each kind has a queue of its own, which is sent as soon as the
// gate lets it through: renewals do not wait for other requests.
type line struct {
	gate   *engine.Gate
	queues [kinds]engine.Batcher[request, answer]
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

// lineTo returns the line to a server. All clients of one server have the same line.
func (s *Store) lineTo(server *redis.Client) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	addr := server.Options().Addr
	l := s.lines[addr]
	if l == nil {
		l = s.newLine(server)
		s.lines[addr] = l
	}
	return l
}

// send sends a request to its server, and returns when the server has answered or ctx is done.
func (s *Store) send(ctx context.Context, r request) (answer, error) {
	if !s.begin() {
		return answer{}, lease.ErrClosed
	}
	defer s.tasks.End()
	a, err := s.lineTo(r.server).queues[r.kind].Do(ctx, r.name, r)
	if err == nil {
		err = a.err
	}
	return a, err
}

// closeLines blocks until no request is under way. There must be no caller of send.
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
