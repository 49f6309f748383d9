package fencing_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// The wrapped handler gets undeclared trailers of the client, even if Handler does not read the body.
func TestHandlerPassesTrailers(t *testing.T) {
	for _, most := range []int64{-1, 0} {
		got := make(chan http.Header, 1)
		h, err := fencing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			got <- r.Trailer.Clone()
		}), &fencing.Options{MaxBody: most})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nFencing-Token: %s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nChecksum: 1\r\n\r\n", lease.TokenOf(1))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("MaxBody %d: %+v, %v", most, resp, err)
		}
		if trailer := <-got; trailer.Get("Checksum") != "1" {
			t.Errorf("MaxBody %d: the trailers are %v", most, trailer)
		}
		conn.Close()
		server.Close()
	}
}
