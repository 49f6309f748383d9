// Command blobtest serves a double of the Azure Blob service whose leases run on a clock
// that a test can move. SDK clients of any language use it with the emulator's account:
//
//	go run github.com/fencedlease/lease/blobtest/cmd/blobtest -clock manual
//
// It prints a connection string, then logs one line a request. While it runs,
//
//	curl http://127.0.0.1:10000/_clock                           # what time it is
//	curl -X POST 'http://127.0.0.1:10000/_clock?advance=15s'     # move on
//
// The clock may be asked by anyone. Blobs and containers ask for a signature, which SDK clients
// make and curl does not: start it with -allow-anyone to do without. There are clients that
// sign otherwise for the emulator's account than the service asks (hashicorp/go-azure-sdk, which
// Terraform uses, is one) and are answered 403: start it with -account, and another name.
// The Date of answers is the clock's too: a client that compares it with its own time, as rclone
// does, may warn.
// An interrupt ends the program when the requests under way are answered, or after 5 s; a second
// one ends it at once.
//
// The flags are
//
//	-account name:key   serve it in place of the emulator's account; may be repeated
//	-addr address       to listen on, 127.0.0.1:10000; port 0 takes a free one
//	-allow-anyone       ask for no signatures
//	-clock mode         real; manual: it stands still until moved; or a rate such as 60x
//	-published-table    answer 409 in the three cells where the published table differs
//	-quiet              log no requests
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fencedlease/lease/blobtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "blobtest:", err)
		os.Exit(1)
	}
}

// grace is how long an interrupt waits for the requests under way.
const grace = 5 * time.Second

// run serves until the context is done. What programs read goes to out, logs to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("blobtest", flag.ContinueOnError)
	flags.SetOutput(log)
	var o blobtest.Options
	addr := flags.String("addr", "127.0.0.1:10000", "`address` to listen on; port 0 takes a free one")
	clock := flags.String("clock", "real", "`mode` of the clock: real, manual (it stands still until moved), or a rate such as 60x")
	quiet := flags.Bool("quiet", false, "log no requests")
	flags.BoolVar(&o.AllowAnyone, "allow-anyone", false, "ask for no signatures")
	flags.BoolVar(&o.PublishedTable, "published-table", false, "answer 409 in the three cells where the published table differs from the service")
	flags.Func("account", "serve `name:key` (key in base64) in place of the emulator's account; may be repeated", func(s string) error {
		name, key, ok := strings.Cut(s, ":")
		if !ok {
			return errors.New("must be name:key")
		}
		if o.Accounts == nil {
			o.Accounts = map[string]string{}
		}
		o.Accounts[name] = key
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	rate, err := parseClock(*clock)
	if err != nil {
		return err
	}
	o.Clock = blobtest.NewFastClock(time.Now(), rate)
	if !*quiet {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	h, err := blobtest.NewHandler(nil, &o)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	announce(out, l.Addr().String(), o.Accounts, *clock)
	return serve(ctx, h, l)
}

// serve serves the double and its clock, until the context is done.
func serve(ctx context.Context, h *blobtest.Handler, l net.Listener) error {
	s := h.HTTPServer()
	clock := clockHandler{h.Clock()}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == clockPath { // no http.ServeMux: it would clean the paths of blobs
			clock.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
	served := make(chan error, 1)
	go func() { served <- h.Serve(s, l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close() // a client that sends nothing, or half of a request, is no fault of the program
	}
	return errors.Join(err, <-served)
}

// parseClock returns the rate of a clock: 1 for real, 0 for manual.
func parseClock(mode string) (rate float64, err error) {
	switch mode {
	case "real":
		return 1, nil
	case "manual":
		return 0, nil
	}
	number, ok := strings.CutSuffix(mode, "x")
	if rate, err = strconv.ParseFloat(number, 64); !ok || err != nil || !(rate >= 0 && rate <= 1e6) {
		return 0, fmt.Errorf("-clock %s: must be real, manual, or a rate from 0x to 1000000x", mode)
	}
	return rate, nil
}

// announce tells clients how to connect, an account a line, in the order of their names.
func announce(out io.Writer, addr string, accounts map[string]string, clock string) {
	if accounts == nil {
		accounts = map[string]string{blobtest.DefaultAccount: blobtest.DefaultKey}
	}
	fmt.Fprintf(out, "clock: http://%s%s (%s)\n", addr, clockPath, clock)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		fmt.Fprintf(out, "DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=http://%s/%s;\n", name, accounts[name], addr, name)
	}
}
