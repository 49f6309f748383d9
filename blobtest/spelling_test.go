package blobtest

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
)

// sink is a connection that discards all written bytes.
type sink struct{ net.Conn }

func (sink) Write(p []byte) (int, error) { return len(p), nil }

// The parser returns the names in the head of the request that is answered next, even if it arrives in
// pieces. It forgets them when the answer is written. An interim answer such as 100 Continue does not
// count as an answer.
func TestSpellingOfHeads(t *testing.T) {
	const (
		head  = "PUT / HTTP/1.1\r\nHost: x\r\nX-MS-META-LockID: 1\r\n\r\n"
		other = "PUT / HTTP/1.1\r\nx-ms-meta-lockID: 1\r\nx-ms-meta-More: 2\r\n\r\n"
		quote = " HTTP/1.1\nx-ms-meta-LOCKID: 3\n" // a head without an end
		ok    = "HTTP/1.1 200 OK\r\n\r\n"
	)
	first, second := map[string]string{"lockid": "LockID"}, map[string]string{"lockid": "lockID", "more": "More"}
	for _, o := range []struct {
		sent []string // by the client and by the server, in turn
		want map[string]string
	}{
		{[]string{head}, first},
		{[]string{strings.Replace(head, "1.1", "1.0", 1)}, first},
		{[]string{strings.ReplaceAll(head, "\r", "")}, first},
		{[]string{head + other}, first},
		{[]string{head, "HTTP/1.1 100 Continue\r\n\r\n", other}, first},
		{[]string{head, "HTTP/1.1 103 Early Hints\r\n\r\n", other}, first},
		{[]string{head, ok}, nil},
		{[]string{head, ok, other}, second},
		{[]string{head, ok, "", "body", other}, second},
		{[]string{head, strings.Replace(ok, "1.1", "1.0", 1), other}, second},
		// The body of a pipelined request, and then a request that is not pipelined.
		{[]string{head + head, ok, quote, ok}, nil},
		{[]string{head + head, ok, quote, ok, head}, first},
		{[]string{head + head, ok, quote + strings.Repeat("x", 2*maxHead), ok, other}, second},
	} {
		for _, size := range []int{1, 2, 3, 1 << 20} {
			c := &reasonConn{Conn: sink{}, spelling: spellingParser{parsing: true, names: map[string]string{}}}
			for i, part := range o.sent {
				if i%2 == 1 {
					if _, err := c.Write([]byte(part)); err != nil {
						t.Fatal(err)
					}
					continue
				}
				for p := range slices.Chunk([]byte(part), size) {
					c.spelling.read(p)
				}
			}
			if got := c.spelling.names; !maps.Equal(got, o.want) {
				t.Errorf("%.200q, %d bytes at a time: %q, want %q", o.sent, size, got, o.want)
			}
		}
	}
}

// The body of a pipelined request takes no memory, however long its lines are.
func TestSpellingOfBodies(t *testing.T) {
	for _, begin := range []string{"", " HTTP/1.1\n", " HTTP/1.1\nx-ms-meta-a: "} {
		s := spellingParser{parsing: true, names: map[string]string{}}
		s.read([]byte(begin))
		part := make([]byte, 1<<20)
		for range 4 {
			s.read(part)
		}
		if n := cap(s.line); n > 4*maxHead {
			t.Errorf("after %q and 4 MiB, %d bytes are kept", begin, n)
		}
	}
}
