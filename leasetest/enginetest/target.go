package enginetest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A Server is a server that a test can start, pause and kill, such as a [Child]. A struct that embeds a
// [*Process] must add only the methods Addr and Start.
type Server interface {
	// Addr returns the host and port at which the server listens.
	Addr() string

	// Start starts the server again after Kill, at the same address and with all data that it has
	// acknowledged. It returns when the server answers.
	Start() error

	Kill() // ends the server at once, like a crash

	Pause(d time.Duration) error // stops the server for the time d, so that connections stay open but nothing is answered
}

// A Target contains the endpoints to which a test sends its requests, and the faults that the test injects.
type Target struct {
	// Endpoints contains an endpoint for each client. For example, an endpoint can be the URL of a server.
	// Clients may share an endpoint.
	Endpoints []string

	// Harm injects a random fault, and returns the name of the fault when the fault is over. A test calls
	// Harm repeatedly, from a single goroutine. Default: there are no faults.
	Harm func(*rand.Rand) string
}

// At creates a [Target] for tests without faults. Its n clients all use the same endpoint.
func At(endpoint string, n int) (t Target) {
	for range n {
		t.Endpoints = append(t.Endpoints, endpoint)
	}
	return t
}

// UnderFaults returns a [Target] for four clients. Two of them reach the server s through a [Proxy], and two
// directly. The faults pause the server, kill and restart it, cut the connections through the proxy, make
// them slow or silent, or drop the answers of the server. The function endpoint makes an endpoint from the
// host and port of the server or of the proxy. If endpoint is nil, the host and port are the endpoint.
func UnderFaults(t testing.TB, s Server, endpoint func(addr string) string) Target {
	t.Helper()
	if endpoint == nil {
		endpoint = func(addr string) string { return addr }
	}
	p := NewProxy(t, s.Addr(), nil)
	proxied, direct := endpoint(p.Addr()), endpoint(s.Addr())
	return Target{Endpoints: []string{proxied, proxied, direct, direct}, Harm: func(r *rand.Rand) string {
		if r.IntN(2) == 0 {
			return p.Harm(r)
		}
		if r.IntN(2) == 0 {
			if err := s.Pause(moment(r)); err != nil {
				t.Error(err)
			}
			return "server paused"
		}
		s.Kill()
		if err := s.Start(); err != nil {
			t.Error(err)
		}
		return "server killed and started again"
	}}
}

// Harm injects a random fault into the connections through the proxy. When the fault is over, Harm returns
// its name.
func (p *Proxy) Harm(r *rand.Rand) (what string) {
	switch r.IntN(5) {
	case 0:
		p.Slow(20 * time.Millisecond)
		what = "slow connections"
	case 1:
		p.Isolate()
		what = "silent connections"
	case 2:
		p.LoseAnswers()
		what = "lost answers"
	default:
		p.Cut()
		return "connections cut"
	}
	time.Sleep(moment(r)) // in real time, because a server cannot run in a synctest bubble
	p.Heal()
	p.Cut() // otherwise a client might keep a dead connection for longer than a test takes
	return what
}

// The function moment draws the duration of a fault. This duration is longer than the timeout of most
// requests in these tests. Some faults are longer than the leases of the tests, and others are shorter.
func moment(r *rand.Rand) time.Duration { return time.Duration(100+r.IntN(400)) * time.Millisecond }
