package natslease

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/fencedlease/lease"
)

// A greeter is a server that only lets a client connect and tells it its version.
type greeter string

func (version greeter) InProcessConn() (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		_, _ = fmt.Fprintf(far, "INFO {\"version\":%s,\"max_payload\":1024}\r\n", strconv.Quote(string(version)))
		for lines := bufio.NewScanner(far); lines.Scan(); {
			if lines.Text() == "PING" {
				_, _ = io.WriteString(far, "PONG\r\n")
			}
		}
	}()
	return near, nil
}

func TestServerVersions(t *testing.T) {
	for version, old := range map[string]bool{"2.11.9": true, "1.99.0": true, "": false, "2.12.0": false, "3.0.0": false, "new": true} {
		nc, err := nats.Connect("", nats.InProcessServer(greeter(version)), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		err = checkVersion(nc)
		nc.Close()
		var field *lease.FieldError
		if errors.As(err, &field) != old || old && (field.Value != strconv.Quote(version) || field.Code != lease.ErrOption) {
			t.Errorf("a server of version %q: %v", version, err)
		}
	}
}
