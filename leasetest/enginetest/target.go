package enginetest

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A Server is a server that a test can start, pause and kill. [Child] is one. A struct that embeds a
// [*Process] needs only the methods Addr and Start.
type Server interface {
	// Addr returns the host and port at which the server listens.
	Addr() string

	// Start starts the server again after Kill, at the same address and with all data that it has
	// acknowledged. It returns when the server answers.
	Start() error

	Kill() // ends the server at once, like a crash

	Pause(d time.Duration) error // stops the server for the time d, so that it keeps its connections and answers nothing
}

// A Target says where a test sends requests, and which faults it injects meanwhile.
type Target struct {
	// Endpoints contains an endpoint for each client, such as an address or a URL. Several clients may have
	// the same endpoint.
	Endpoints []string

	// Harm injects a random fault, and returns the name of the fault when it is over. A test calls Harm
	// again and again, from one goroutine. Default: there are no faults.
	Harm func(*rand.Rand) string
}

// At returns a [Target] without faults for n clients, which all use the same endpoint.
func At(endpoint string, n int) (t Target) {
	for range n {
		t.Endpoints = append(t.Endpoints, endpoint)
	}
	return t
}

// UnderFaults returns a [Target] for four clients. Two of them reach the server s through a [Proxy], and
// two directly. The server is paused, and killed and started again. Connections through the proxy are
// cut, become slow or silent, or lose the answers of the server. The function endpoint makes an endpoint
// from a host and port, either of the server or of the proxy. If it is nil, the host and port are the
// endpoint.
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

// Harm injects a random fault into the connections through the proxy. It returns the name of the fault
// when the fault is over.
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
	time.Sleep(moment(r)) // a real server
	p.Heal()
	p.Cut() // dead connections, which a client may keep for longer than a test takes
	return what
}

// moment returns how long a fault lasts: longer than the timeout of most requests in these tests, and
// shorter or longer than their leases.
func moment(r *rand.Rand) time.Duration { return time.Duration(100+r.IntN(400)) * time.Millisecond }
