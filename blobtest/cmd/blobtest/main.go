// Command blobtest runs a test double of the Azure Blob service. The double has its own clock, and a test can
// move this clock forward to let leases expire. SDK clients of any language connect to the double with the
// emulator's account:
//
//	go run github.com/fencedlease/lease/blobtest/cmd/blobtest -clock manual
//
// The command prints a connection string for every account, and then logs a line for every request. While the
// command runs, a test can control it through two addresses:
//
//	curl http://127.0.0.1:10000/_clock                         # show the time
//	curl -X POST 'http://127.0.0.1:10000/_clock?advance=15s'   # move the clock
//	curl -X POST http://127.0.0.1:10000/_reset                 # delete all containers and blobs
//
// If the command listens on all interfaces, it first prints the address for other machines and containers,
// and then addresses of the loopback interface for clients on the same machine.
//
// Requests to the two control addresses need no signature. The command refuses such a request if it has the
// header Origin, so that a web page in a browser cannot control the test. If the command listens only on the
// loopback interface, the Host of a control request must be an IP address, localhost, a name that ends in
// .localhost, or the host of -addr.
//
// Requests for containers and blobs need a signature. SDK clients sign their requests, but curl does not.
// With -allow-anyone, requests need no signature, and bearer tokens are not verified.
//
// Some clients sign requests to the emulator's account in a way that the Blob service does not accept, and
// get the status 403. One of these clients is hashicorp/go-azure-sdk, which Terraform uses. To use such a
// client, serve an account with a different name, which the flag -account specifies.
//
// The Date header of each answer shows the time of this command's clock. Some clients, such as rclone, warn
// if that time differs from their own.
//
// With -tls, the command makes a self-signed certificate and prints the name of a file that contains it. The
// file is removed when the command ends. The certificate covers localhost, 127.0.0.1, ::1, the host of -addr,
// the name of the machine, *.blob.localhost and *.blob.core.windows.net.
//
// After an interrupt, the command waits for at most 5 s until the requests in progress are answered, and then
// ends. A second interrupt ends the command at once.
//
// The flags are
//
//	-account name:key   serve name:key (key in base64) instead of the emulator's account; may be repeated
//	-addr address       listen on address, by default 127.0.0.1:10000; port 0 takes a free port
//	-allow-anyone       ask for no signatures
//	-cert file          serve HTTPS with the certificate in file; needs -key
//	-clock mode         real; manual, which stands still until it is moved; or a rate such as 60x
//	-container name     create the container name in every account; may be repeated
//	-key file           the private key of -cert
//	-max-blob bytes     limit the size of a blob, by default to 256 MiB
//	-max-body bytes     limit the size of a request body, by default to 64 MiB
//	-max-total bytes    limit the size of everything that is kept, by default to 1 GiB
//	-published-table    answer 409 in the three cells where the published table differs from the service
//	-quiet              log no requests
//	-timeout duration   limit the time of a request, by default to 30 s
//	-tls                serve HTTPS with a certificate made for this run, unless -cert names one
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
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/leasefault"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, message(err))
		os.Exit(1)
	}
}

// The function message returns the error message for err. The message begins with the name of the command. If
// err is about a field of [blobtest.Options], the message contains the name of the flag that sets this field.
func message(err error) string {
	text := strings.TrimPrefix(err.Error(), "blobtest: ")
	if bad := (*lease.FieldError)(nil); errors.As(err, &bad) {
		field, _, _ := strings.Cut(bad.Field, "[") // drop the index of a value
		text = flagNames.Replace(field) + " = " + bad.Value + ": " + flagNames.Replace(bad.Bound)
	}
	return "blobtest: " + text
}

// flagNames replaces the names of fields of [blobtest.Options] with the names of their flags.
var flagNames = strings.NewReplacer("Options.", "", "Accounts", "-account", "Containers", "-container",
	"MaxBody", "-max-body", "MaxBlob", "-max-blob", "MaxTotal", "-max-total", "Timeout", "-timeout")

// shutdownTime is how long the command waits for requests in progress after an interrupt.
const shutdownTime = 5 * time.Second

// settings are the values of the flags.
type settings struct {
	blobtest.Options
	addr, clock string
	quiet, tls  bool
	cert, key   string
	certificate string // the file of the certificate that was made for this run
}

// The function run serves until ctx is done. It writes to two writers: the parameter out gets the output for
// other programs, and the parameter log gets the log messages.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	s, err := parse(args, log)
	if err != nil {
		return err
	}
	h, err := blobtest.NewHandler(nil, &s.Options)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	bound := l.Addr()
	if s.tls {
		var remove func()
		plain := l
		if l, s.certificate, remove, err = listenTLS(plain, s.cert, s.key, s.addr); err != nil {
			return errors.Join(err, plain.Close())
		}
		defer remove()
	}
	s.announce(out, usableAddress(s.addr, bound), remoteAddress(bound))
	return serve(ctx, h, l, trustedHost(s.addr, bound))
}

func parse(args []string, log io.Writer) (*settings, error) {
	flags := flag.NewFlagSet("blobtest", flag.ContinueOnError)
	flags.SetOutput(log)
	s := &settings{}
	flags.StringVar(&s.addr, "addr", "127.0.0.1:10000", "listen on `address`; port 0 takes a free port")
	flags.StringVar(&s.clock, "clock", "real", "`mode` of the clock: real; manual, which stands still until it is moved; or a rate such as 60x")
	flags.BoolVar(&s.quiet, "quiet", false, "log no requests")
	flags.BoolVar(&s.tls, "tls", false, "serve HTTPS with a certificate made for this run, unless -cert names one")
	flags.StringVar(&s.cert, "cert", "", "serve HTTPS with the certificate in `file`; needs -key")
	flags.StringVar(&s.key, "key", "", "the `file` with the private key of -cert")
	flags.BoolVar(&s.AllowAnyone, "allow-anyone", false, "ask for no signatures")
	flags.BoolVar(&s.PublishedTable, "published-table", false, "answer 409 in the three cells where the published table differs from the service")
	flags.Int64Var(&s.MaxBody, "max-body", 0, "limit the size of a request body to so many `bytes`; 0 is 64 MiB")
	flags.Int64Var(&s.MaxBlob, "max-blob", 0, "limit the size of a blob to so many `bytes`; 0 is 256 MiB")
	flags.Int64Var(&s.MaxTotal, "max-total", 0, "limit the size of everything that is kept to so many `bytes`; 0 is 1 GiB")
	flags.DurationVar(&s.Timeout, "timeout", 0, "limit the time of a request to `duration`; 0 is 30 s")
	flags.Func("container", "create the container `name` in every account; may be repeated", func(name string) error {
		s.Containers = append(s.Containers, name)
		return nil
	})
	flags.Func("account", "serve `name:key` (key in base64) instead of the emulator's account; may be repeated", func(arg string) error {
		name, key, ok := strings.Cut(arg, ":")
		if !ok {
			return errors.New("must be name:key")
		}
		if s.Accounts == nil {
			s.Accounts = map[string]string{}
		}
		s.Accounts[name] = key
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if (s.cert == "") != (s.key == "") {
		return nil, errors.New("-cert and -key must be given together")
	}
	s.tls = s.tls || s.cert != ""
	s.addr = withPort(s.addr)
	rate, err := parseClock(s.clock)
	if err != nil {
		return nil, err
	}
	s.Clock = leasefault.NewClockAt(time.Now(), rate)
	if !s.quiet {
		s.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	return s, nil
}

// withPort returns addr. If addr has no port, it adds the port of the emulator.
func withPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), "10000")
}

// usableAddress returns the address to which clients on this machine connect. Clients cannot connect to an
// address such as 0.0.0.0, so the function returns a loopback address instead.
func usableAddress(addr string, bound net.Addr) string {
	tcp, ok := bound.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return bound.String()
	}
	host := "127.0.0.1"
	if asked, _, _ := net.SplitHostPort(addr); strings.Contains(asked, ":") {
		host = "::1" // bound is :: even if addr contains 0.0.0.0 or no host
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// remoteAddress returns the address to which clients on other machines connect. It returns "" if the listener
// is not bound to all interfaces, or if this machine has no name.
func remoteAddress(bound net.Addr) string {
	tcp, ok := bound.(*net.TCPAddr)
	name, err := os.Hostname()
	if !ok || !tcp.IP.IsUnspecified() || err != nil || name == "" {
		return ""
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// serve serves the test double and its control endpoints until the context is done.
func serve(ctx context.Context, h *blobtest.Handler, l net.Listener, trusted func(host string) bool) error {
	s := h.HTTPServer()
	s.Handler = control{h, trusted}
	served := make(chan error, 1)
	go func() { served <- h.Serve(s, l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	err := s.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close() // a client that sends nothing, or half of a request, is not an error of the command
	}
	return errors.Join(err, <-served)
}

// parseClock returns the rate of a clock: 1 for the mode real, and 0 for the mode manual.
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

// announce prints the addresses for clients, and the connection strings in the order of account names. The
// parameter named remote contains a different address for other machines, if there is one. Otherwise this
// parameter is empty.
func (s *settings) announce(out io.Writer, addr, remote string) {
	accounts, scheme := s.Accounts, "http"
	if accounts == nil {
		accounts = map[string]string{blobtest.DefaultAccount: blobtest.DefaultKey}
	}
	if s.tls {
		scheme = "https"
	}
	if s.certificate != "" {
		fmt.Fprintf(out, "certificate: %s\n", s.certificate)
	}
	if remote != "" {
		fmt.Fprintf(out, "from another machine or container, use %s instead of %s\n", remote, addr)
	}
	fmt.Fprintf(out, "clock: %s://%s%s (%s)\n", scheme, addr, clockPath, s.clock)
	for _, name := range slices.Sorted(maps.Keys(accounts)) {
		fmt.Fprintf(out, "DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;BlobEndpoint=%s://%s/%s;\n", scheme, name, accounts[name], scheme, addr, name)
	}
}
