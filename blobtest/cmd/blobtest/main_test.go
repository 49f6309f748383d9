package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/check/linked"
)

// A program is a process of the command, which runs until the test ends.
type program struct {
	t           *testing.T
	clock       string // URLs
	endpoint    string
	certificate string // file
	printed     []string
	client      *http.Client
	stop        func() error
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), w, io.Discard)
		w.CloseWithError(errors.Join(err, io.EOF))
		done <- err
	}()
	p := &program{t: t, client: http.DefaultClient, stop: sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
	t.Cleanup(func() { p.stop() })
	for s := bufio.NewScanner(r); p.endpoint == ""; {
		if !s.Scan() {
			t.Fatal("the program prints nothing: ", s.Err())
		}
		p.printed = append(p.printed, s.Text())
		if rest, ok := strings.CutPrefix(s.Text(), "certificate: "); ok {
			p.certificate = rest
			pem, err := os.ReadFile(rest)
			if err != nil {
				t.Fatal(err)
			}
			p.trust(pem)
		} else if rest, ok := strings.CutPrefix(s.Text(), "clock: "); ok {
			p.clock, _, _ = strings.Cut(rest, " ")
		} else if _, rest, ok := strings.Cut(s.Text(), "BlobEndpoint="); ok {
			p.endpoint = strings.TrimSuffix(rest, ";")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return p
}

// trust makes requests over TLS, with the certificates in pem as roots.
func (p *program) trust(pem []byte) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		p.t.Fatalf("no certificate: %s", pem)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	p.client = &http.Client{Transport: transport}
	p.t.Cleanup(transport.CloseIdleConnections)
}

func (p *program) do(status int, method, url string, h ...string) *http.Response {
	p.t.Helper()
	return p.send(status, method, url, "", h...)
}

// send sends a request with headers by name and value in turn. The header X-Body gets the body of the
// answer.
func (p *program) send(status int, method, url, body string, h ...string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(h); i += 2 {
		if r.Header.Set(h[i], h[i+1]); h[i] == "Host" {
			r.Host = h[i+1]
		}
	}
	res, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != status {
		p.t.Fatalf("%s %s %q: %s %s, want %d", method, url, h, res.Status, b, status)
	}
	res.Header.Set("X-Body", string(b))
	return res
}

// A lease expires when the clock is moved over HTTP, and an interrupt ends the program.
func TestManualClock(t *testing.T) {
	p := start(t, "-clock", "manual", "-allow-anyone", "-quiet")
	v := []string{"x-ms-version", "2025-11-05"}
	p.do(201, "PUT", p.endpoint+"/box?restype=container", v...)
	p.do(201, "PUT", p.endpoint+"/box/blob", append(v, "x-ms-blob-type", "BlockBlob")...)
	p.do(201, "PUT", p.endpoint+"/box/blob?comp=lease", append(v, "x-ms-lease-action", "acquire", "x-ms-lease-duration", "15")...)
	state := func() string {
		return p.do(200, "HEAD", p.endpoint+"/box/blob", v...).Header.Get("x-ms-lease-state")
	}
	if s := state(); s != "leased" {
		t.Fatalf("state %s, want leased", s)
	}
	p.do(200, "POST", p.clock+"?advance=14s999ms")
	if s := state(); s != "leased" {
		t.Fatalf("state %s before its end, want leased", s)
	}
	p.do(200, "POST", p.clock+"?advance=1ms")
	if s := state(); s != "expired" {
		t.Fatalf("state %s at its end, want expired", s)
	}
	p.do(400, "POST", p.clock+"?advance=soon")
	p.do(400, "POST", p.clock+"?advance=-1s")
	for range 27 { // 292 years each
		p.do(200, "POST", p.clock+"?advance=2562047h")
	}
	p.do(400, "POST", p.clock+"?advance=2562047h") // beyond the year 9999
	p.do(405, "DELETE", p.clock)
	p.do(200, "GET", p.clock)
	http.DefaultClient.CloseIdleConnections()
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(p.clock, "http://"), clockPath)); err == nil {
		c.Close()
		t.Error("it still listens after its end")
	}
}

func TestParseClock(t *testing.T) {
	for mode, want := range map[string]float64{"real": 1, "manual": 0, "60x": 60, "0.5x": 0.5} {
		if got, err := parseClock(mode); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", mode, got, err, want)
		}
	}
	for _, mode := range []string{"", "fast", "60", "-1x", "NaNx", "1e7x", "x"} {
		if _, err := parseClock(mode); err == nil {
			t.Errorf("%q is taken", mode)
		}
	}
}

// The package documentation lists all flags.
func TestFlagsAreDescribed(t *testing.T) {
	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	there := regexp.MustCompile(`(?m)^  (-\S+(?: \S+)?)$`).FindAllStringSubmatch(help.String(), -1)
	documented := regexp.MustCompile(`(?m)^\t(-\S+(?: \S+)?)  `).FindAllStringSubmatch(f.Doc.Text(), -1)
	same := func(a, b []string) bool { return a[1] == b[1] }
	if len(there) == 0 || !slices.EqualFunc(there, documented, same) {
		t.Errorf("documented are %q, want %q", documented, there)
	}
}

// If an argument is not valid, the program ends with an error that names the argument.
func TestBadArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-clock fast", "-clock fast"},
		{"-account nokey", "name:key"},
		{"-account UPPER:a2V5", `-account = "UPPER": must`},
		{"-container jobs -container B", `-container = "B": must`},
		{"-container MaxBody[0]", `-container = "MaxBody[0]": must`},
		{"-max-body 20 -max-blob 10", "-max-blob = 10: must not be below -max-body, 20"},
		{"-max-blob 20 -max-total 10", "-max-total = 10: must not be below -max-blob, 20"},
		{"-max-total 5000 -container aaa -container bbb", "-max-total = 5000: must be at least 8192, for -container"},
		{"-timeout -1s", "-timeout = -1s: must not be negative"},
		{"-timeout 1ns -container jobs", "creating the container devstoreaccount1/jobs"},
		{"left over", `"left"`},
		{"-addr 256.0.0.1:1", "256.0.0.1"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := run(ctx, strings.Fields(c.args), io.Discard, io.Discard)
		cancel()
		if err == nil {
			t.Errorf("%s: no error, want %s", c.args, c.want)
			continue
		}
		got := message(err)
		if !strings.Contains(got, c.want) || strings.Contains(got, "Options") || strings.Count(got, "blobtest: ") != 1 {
			t.Errorf("%s: %s, want a message with %s and without fields of Options, and one prefix", c.args, got, c.want)
		}
	}
}

// If the command listens on all interfaces, it prints an address to which a client can connect.
func TestPrintedAddress(t *testing.T) {
	for _, o := range []struct{ addr, bound, want string }{
		{"127.0.0.1:0", "127.0.0.1:4711", "127.0.0.1:4711"},
		{"0.0.0.0:0", "0.0.0.0:4711", "127.0.0.1:4711"},
		{"0.0.0.0:0", "[::]:4711", "127.0.0.1:4711"},
		{":0", "[::]:4711", "127.0.0.1:4711"},
		{"[::]:0", "[::]:4711", "[::1]:4711"},
		{"[::1]:0", "[::1]:4711", "[::1]:4711"},
		{"192.0.2.1:0", "192.0.2.1:4711", "192.0.2.1:4711"},
	} {
		bound, err := net.ResolveTCPAddr("tcp", o.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := usableAddress(o.addr, bound); got != o.want {
			t.Errorf("-addr %s: %s, want %s", o.addr, got, o.want)
		}
	}
	p := start(t, "-addr", "0.0.0.0:0", "-allow-anyone", "-quiet")
	if !strings.HasPrefix(p.endpoint, "http://127.0.0.1:") {
		t.Errorf("printed is %s", p.endpoint)
	}
	p.do(200, "GET", p.clock)
	p.do(200, "GET", p.endpoint+"?comp=list", version...)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	local := strings.Split(strings.TrimPrefix(p.endpoint, "http://"), "/")[0]
	_, port, _ := strings.Cut(local, ":")
	if want := fmt.Sprintf("from another machine or container, use %s:%s instead of %s", host, port, local); !slices.Contains(p.printed, want) {
		t.Errorf("printed is %q, without %q", p.printed, want)
	}
	p.do(200, "GET", p.endpoint+"?comp=list", append(version, "Host", net.JoinHostPort(host, port))...)
	if p := start(t, "-quiet"); strings.Contains(strings.Join(p.printed, "\n"), "another machine") {
		t.Errorf("on the loopback interface, printed is %q", p.printed)
	}
}

// An address without a port has the port of the emulator.
func TestDefaultPort(t *testing.T) {
	for addr, want := range map[string]string{"0.0.0.0": "0.0.0.0:10000", "localhost": "localhost:10000", "::1": "[::1]:10000", "[::1]": "[::1]:10000", "127.0.0.1:1": "127.0.0.1:1", ":1": ":1"} {
		if got := withPort(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

var version = []string{"x-ms-version", "2025-11-05"}

// Every account has the containers of -container from the start, and after a reset, which deletes the rest.
func TestContainersAndReset(t *testing.T) {
	p := start(t, "-container", "jobs", "-container", "$root", "-account", "one:a2V5", "-account", "two:a2V5", "-allow-anyone", "-quiet", "-clock", "manual")
	base := p.endpoint[:strings.LastIndex(p.endpoint, "/")]
	acquire := append(version, "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1")
	for range 2 {
		for _, account := range []string{"/one", "/two"} {
			p.do(201, "PUT", base+account+"/jobs?restype=container&comp=lease", acquire...)
			p.do(201, "PUT", base+account+"/alone", append(version, "x-ms-blob-type", "BlockBlob")...)
			p.do(201, "PUT", base+account+"/alone?comp=lease", acquire...)
			p.do(404, "HEAD", base+account+"/mine?restype=container", version...)
			p.do(201, "PUT", base+account+"/mine?restype=container", version...)
		}
		p.do(405, "GET", base+resetPath)
		p.do(204, "POST", base+resetPath)
	}
}

// The limits can be set by flags.
func TestLimitFlags(t *testing.T) {
	p := start(t, "-max-body", "10", "-max-blob", "20", "-max-total", "20000", "-timeout", "9s", "-container", "box", "-allow-anyone", "-quiet")
	put := append(version, "x-ms-blob-type", "BlockBlob")
	if code := p.send(413, "PUT", p.endpoint+"/box/blob", strings.Repeat("x", 11), put...).Header.Get("x-ms-error-code"); code != "RequestBodyTooLarge" {
		t.Error(code)
	}
	p.send(201, "PUT", p.endpoint+"/box/blob", strings.Repeat("x", 10), put...)
	full := p.send(507, "PUT", p.endpoint+"/box/snapshots", strings.Repeat("x", 10), append(put, "x-ms-meta-a", strings.Repeat("x", 8000))...).Header
	if code := full.Get("x-ms-error-code"); code != "InsufficientStorage" || !strings.Contains(full.Get("X-Body"), "raise -max-total") {
		t.Error(code)
	}
}

// A page in a browser cannot control the double, not even one whose host name resolves to this machine.
func TestControlRefusesPages(t *testing.T) {
	p := start(t, "-clock", "manual", "-container", "box", "-allow-anyone", "-quiet")
	base, _ := strings.CutSuffix(p.clock, clockPath)
	port := base[strings.LastIndex(base, ":"):]
	now := func() string { return p.do(200, "GET", p.clock).Header.Get("X-Body") }
	before := now()
	for _, origin := range []string{"http://evil.example", "null", "http://127.0.0.1" + port} {
		p.do(403, "POST", p.clock+"?advance=15s", "Origin", origin)
		p.do(403, "GET", p.clock, "Origin", origin)
		p.do(403, "POST", base+resetPath, "Origin", origin)
	}
	for host, status := range map[string]int{
		"evil.example": 403, "evil.example" + port: 403, "127.0.0.1.evil.example" + port: 403, "localhost.evil.example": 403,
		"localhost" + port: 200, "127.0.0.1" + port: 200, "[::1]" + port: 200, "LOCALHOST": 200, "devstoreaccount1.blob.localhost" + port: 200,
	} {
		p.do(status, "GET", p.clock, "Host", host)
	}
	p.do(403, "POST", base+resetPath, "Host", "evil.example")
	p.do(200, "HEAD", p.endpoint+"/box?restype=container", version...) // the container was not deleted
	if after := now(); after != before {
		t.Errorf("the clock was moved from %s to %s", before, after)
	}
}

// On the loopback interface, Host must be a name of this machine. If other machines can connect, the
// command accepts every Host, because it does not know all names of this machine.
func TestHosts(t *testing.T) {
	for _, o := range []struct {
		bound, addr, host string
		want              bool
	}{
		{"127.0.0.1:1", "127.0.0.1:1", "azure", false},
		{"127.0.0.1:1", "azure:1", "azure:1", true},
		{"127.0.0.1:1", "azure:1", "AZURE", true},
		{"127.0.0.1:1", "azure:1", "evil.example", false},
		{"[::1]:1", "[::1]:1", "evil.example", false},
		{"0.0.0.0:1", "0.0.0.0:1", "azure", true},
		{"[::]:1", ":1", "azure.default.svc:1", true},
		{"192.0.2.1:1", "192.0.2.1:1", "azure.example", true},
	} {
		bound, err := net.ResolveTCPAddr("tcp", o.bound)
		if err != nil {
			t.Fatal(err)
		}
		if got := trustedHost(o.addr, bound)(o.host); got != o.want {
			t.Errorf("listening on %s, -addr %s: Host %s is trusted: %v, want %v", o.bound, o.addr, o.host, got, o.want)
		}
	}
}

// With -tls the command makes a certificate for all its host names, and removes the printed file.
func TestOwnCertificate(t *testing.T) {
	p := start(t, "-tls", "-allow-anyone", "-container", "box", "-quiet")
	config := p.client.Transport.(*http.Transport).TLSClientConfig
	addr := strings.TrimPrefix(p.clock[:strings.LastIndex(p.clock, "/")], "https://")
	for _, host := range []string{"127.0.0.1", "localhost", "devstoreaccount1.blob.localhost", "devstoreaccount1.blob.core.windows.net"} {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: config.RootCAs, ServerName: host})
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		conn.Close()
	}
	p.do(200, "GET", p.endpoint+"/box?restype=container", version...)
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(p.certificate); !os.IsNotExist(err) {
		t.Errorf("the certificate is left behind: %v", err)
	}
}

// With -cert and -key, the command serves the certificate in the given files.
func TestGivenCertificate(t *testing.T) {
	dir := t.TempDir()
	pair, err := makeCertificate("localhost")
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := errors.Join(os.WriteFile(cert, pair.cert, 0o600), os.WriteFile(key, pair.key, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := start(t, "-cert", cert, "-key", key, "-allow-anyone", "-quiet")
	if p.certificate != "" || !strings.HasPrefix(p.endpoint, "https://") {
		t.Errorf("printed are %s and %s", p.endpoint, p.certificate)
	}
	p.trust(pair.cert)
	p.do(200, "GET", p.endpoint+"?comp=list", version...)
	for _, args := range []string{"-cert " + cert, "-key " + key, "-tls -key " + key} {
		if err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "-cert and -key") {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := run(t.Context(), []string{"-cert", key, "-key", key}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("a key as a certificate: %v", err)
	}
}

// After an interrupt, the command waits for a client that is in the middle of a request, and for one that
// has sent nothing. If these do not finish, the command still ends, and reports no error.
func TestInterruptedRequests(t *testing.T) {
	for name, sent := range map[string]string{
		"nothing":        "",
		"half a request": "PUT /devstoreaccount1/box?restype=container HTTP/1.1\r\n",
		"half a body":    "PUT /devstoreaccount1/box/blob HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nx-ms-blob-type: BlockBlob\r\n\r\nhe",
	} {
		synctest.Test(t, func(t *testing.T) {
			h, err := blobtest.NewHandler(nil, &blobtest.Options{AllowAnyone: true})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			l, done := linked.Listen(), make(chan error, 1)
			go func() { done <- serve(ctx, h, l, nil) }()
			ours := l.Dial()
			defer ours.Close()
			if _, err := io.WriteString(ours, sent); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			cancel()
			begin := time.Now()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if d := time.Since(begin); d != shutdownTime {
				t.Errorf("%s: it ended after %v, want %v", name, d, shutdownTime)
			}
		})
	}
}
