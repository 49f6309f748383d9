package pqtest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// A cutter is a proxy for PostgreSQL. A cutter ends a connection after the server has carried out a
// statement, and before the client has the whole answer.
type cutter struct {
	rows atomic.Int64 // the connection that passes on this number of rows is cut; never if it is 0
	at   byte         // the message that is not passed on: 'D' for the row itself, 'Z' for the end of the answer
	cuts atomic.Int64
}

func (c *cutter) listen(t *testing.T, server string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(back, client)
				back.Close()
			}()
			go c.relay(client, back)
		}
	}()
	return l.Addr().String()
}

// relay passes on the messages of the server. Each message begins with a byte for its kind, and its
// length.
func (c *cutter) relay(client, back net.Conn) {
	defer client.Close()
	defer back.Close()
	cut := false
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(back, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(back, body); err != nil {
			return
		}
		if head[0] == 'D' && c.rows.Load() > 0 && c.rows.Add(-1) == 0 {
			cut = true
		}
		if cut && head[0] == 'Z' { // the server has committed
			c.cuts.Add(1)
			return
		}
		if cut && c.at == 'D' {
			continue
		}
		if _, err := client.Write(append(head, body...)); err != nil {
			return
		}
	}
}

// lib/pq says that a connection was bad, even if the server has already carried out the statement.
// Therefore the store does not repeat a write whose connection was bad, and the outcome of the
// write is unknown. SPEC S1, A3.
func TestWritesAreNotRepeated(t *testing.T) {
	for _, mode := range []string{"no", "yes"} {
		for _, at := range []byte{'D', 'Z'} {
			t.Run("binary_parameters="+mode+"/"+string(at), func(t *testing.T) {
				u, err := url.Parse(shared.URL(shared.Database(t)))
				if err != nil {
					t.Fatal(err)
				}
				c := cutter{at: at}
				u.Host = c.listen(t, u.Host)
				query := u.Query()
				query.Set("sslmode", "disable")
				query.Set("binary_parameters", mode)
				u.RawQuery = query.Encode()
				s := open(t, u.String())

				old, err := s.Load(t.Context(), "swapped")
				if err != nil {
					t.Fatal(err)
				}
				c.rows.Store(1)
				_, err = s.Swap(t.Context(), "swapped", old, lease.Record{State: lease.Leased, ID: number(1), Owner: "o",
					Duration: time.Minute, Until: old.Now.Add(time.Minute), Epoch: old.Record.Epoch + 1})
				requireUnknown(t, "Swap", err)
				if now, err := s.Load(t.Context(), "swapped"); err != nil || now.Record.ID != number(1) {
					t.Errorf("the swap was not carried out: %+v, %v", now.Record, err)
				}

				a := s.Authority()
				for _, req := range []lease.Request{
					{Action: lease.ActionAcquire, Proposed: number(1), Duration: time.Minute},
					{Action: lease.ActionRenew, ID: number(1)},
					{Action: lease.ActionChange, ID: number(1), Proposed: number(2)},
					{Action: lease.ActionRelease, ID: number(2)},
				} {
					before, err := lease.Inspect(t.Context(), a, "asked")
					if err != nil {
						t.Fatal(err)
					}
					c.rows.Store(2) // the first row is that of a load, because the request before had no answer
					_, err = a.Do(t.Context(), "asked", req)
					requireUnknown(t, req.Action.String(), err)
					c.rows.Store(0)
					now, err := lease.Inspect(t.Context(), a, "asked")
					if err != nil {
						t.Fatal(err)
					}
					if now.Record.Epoch > before.Record.Epoch+1 {
						t.Errorf("%v: the epoch rose from %d to %d", req.Action, before.Record.Epoch, now.Record.Epoch)
					}
				}
				if c.cuts.Load() < 3 {
					t.Errorf("%d connections were cut", c.cuts.Load())
				}
			})
		}
	}
}

func requireUnknown(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || lease.CodeOf(err) != 0 || errors.Is(err, lease.ErrConflict) {
		t.Errorf("%s: %v; the outcome must be unknown", what, err)
	}
}
