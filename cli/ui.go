package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fencedlease/lease/cli/internal/ui"
)

// serve is lease ui. It prints the address of the page, and serves the page until it is ended.
func serve(ctx context.Context, c *call) error {
	switch {
	case len(c.args) > 1 || c.rest != nil:
		return fail(exitUsage, "ui: want at most one PREFIX; see lease -h")
	case c.interval < 10*time.Millisecond:
		return fail(exitUsage, "-interval is %v: it must be at least 10ms", c.interval)
	case c.port < 0 || c.port > 65535:
		return fail(exitUsage, "-port is %d: it must be a port or 0, which is any free one", c.port)
	}
	store, err := c.openExisting(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	scheme, _, _ := strings.Cut(c.store, ":")
	config := ui.Config{Lister: store, Prefix: strings.Join(c.args, ""), Store: scheme, Interval: c.interval, Enough: enoughGrace}
	if c.breaks {
		config.Breaker = store.Authority()
	}
	page := ui.New(config)
	if err := page.Read(ctx); err != nil {
		return c.unreachable(err)
	}
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", c.port))
	if err != nil {
		return fail(1, "ui: %v", err)
	}
	go page.Run(ctx)
	fmt.Printf("http://%v%s\n", l.Addr(), page.Path())
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	return fail(1, "ui: %v", server.Serve(l))
}
