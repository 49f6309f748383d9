package enginetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

var free addresses

// FreeAddress returns an unused address of the loopback interface. If a server that listens on this address
// is down, the address stays free. There are two reasons for this: no other call of FreeAddress returns it,
// not even in another process at the same time, and operating systems do not use ports of this range for
// outgoing connections. The port number plus 10,000 stays free as well, for a Redis server in a cluster.
func FreeAddress() (string, error) { return free.next() }

// The ports from firstPort on are divided into blocks. Listening on the first port of a block claims it for
// this process, until the process ends.
const (
	firstPort = 15_000
	blockSize = 75
	blocks    = 100
)

// addresses are the addresses of the claimed blocks.
type addresses struct {
	mu           sync.Mutex
	claims       []net.Listener
	unused, used []int // ports
}

func (a *addresses) next() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range blocks * blockSize {
		if len(a.unused) == 0 && !a.claim() {
			a.unused, a.used = a.used, nil // every block is claimed: begin again
		}
		if len(a.unused) == 0 {
			break
		}
		port := a.unused[0]
		a.unused, a.used = a.unused[1:], append(a.used, port)
		address := fmt.Sprint("127.0.0.1:", port)
		if l, err := net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", errors.New("enginetest: there is no free port")
}

// claim claims a random block that no process has.
func (a *addresses) claim() bool {
	for _, block := range rand.Perm(blocks) {
		first := firstPort + block*blockSize
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first))
		if err != nil {
			continue
		}
		a.claims = append(a.claims, l)
		for port := first + 1; port < first+blockSize; port++ {
			a.unused = append(a.unused, port)
		}
		return true
	}
	return false
}
