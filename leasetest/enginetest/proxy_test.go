//go:build linux

package enginetest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
)

// An echo is a server that answers each byte with itself, and counts the bytes.
type echo struct {
	net.Listener
	bytes atomic.Int64
}

func newEcho(t *testing.T) *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{Listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // until the proxy closes the connection
				defer conn.Close()
				for b := make([]byte, 1); ; {
					if _, err := conn.Read(b); err != nil {
						return
					}
					e.bytes.Add(1)
					_, _ = conn.Write(b)
				}
			}()
		}
	}()
	return e
}

func dial(t *testing.T, p *enginetest.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a byte, and waits for its answer.
func ask(conn net.Conn, patience time.Duration) error {
	_ = conn.SetDeadline(time.Now().Add(patience))
	b := make([]byte, 1)
	if _, err := conn.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, b)
	return err
}

const short, long = 100 * time.Millisecond, 20 * time.Second

// answers requires an answer, or silence, or a closed connection.
func requires(t *testing.T, what string, conn net.Conn, want error) {
	t.Helper()
	patience := long
	if want == os.ErrDeadlineExceeded {
		patience = short
	}
	err := ask(conn, patience)
	if closed := err != nil && !errors.Is(err, os.ErrDeadlineExceeded); want == io.EOF && closed {
		return
	}
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	first, second := newEcho(t), newEcho(t)
	p := enginetest.NewProxy(t, first.Addr().String(), nil)
	conn := dial(t, p)
	requires(t, "at first", conn, nil)

	p.Cut()
	requires(t, "cut", conn, io.EOF)

	conn = dial(t, p)
	requires(t, "before the silence", conn, nil)
	p.Silence()
	before := first.bytes.Load()
	requires(t, "silent", conn, os.ErrDeadlineExceeded)
	if n := first.bytes.Load() - before; n != 0 {
		t.Errorf("%d bytes passed a dead connection", n)
	}
	requires(t, "new after the silence", dial(t, p), nil)

	p.Isolate()
	requires(t, "isolated", dial(t, p), os.ErrDeadlineExceeded)
	p.Heal()
	requires(t, "dead after it was healed", conn, os.ErrDeadlineExceeded)
	conn = dial(t, p)
	requires(t, "new after it was healed", conn, nil)

	p.LoseAnswers()
	before = first.bytes.Load()
	requires(t, "deaf", conn, os.ErrDeadlineExceeded)
	for deadline := time.Now().Add(long); first.bytes.Load() == before; time.Sleep(time.Millisecond) { // a real server
		if time.Now().After(deadline) {
			t.Fatal("the server did not get the request whose answer is lost")
		}
	}
	p.Heal()

	p.Slow(short)
	conn = dial(t, p)
	began := time.Now()
	requires(t, "slow", conn, nil)
	if took := time.Since(began); took < 2*short {
		t.Errorf("a slow answer took %v", took)
	}
	p.Heal()

	p.Refuse()
	requires(t, "refused", dial(t, p), io.EOF)
	requires(t, "before new ones were refused", conn, nil)
	p.Heal()

	p.Target(second.Addr().String())
	requires(t, "at another server", dial(t, p), nil)
	if second.bytes.Load() != 1 {
		t.Error("the request did not reach the other server")
	}
}
