package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/pipes"
)

// A program is run with arguments until the test ends.
type program struct {
	t        *testing.T
	clock    string // URLs
	endpoint string
	stop     func() error
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
	p := &program{t: t, stop: sync.OnceValue(func() error {
		cancel()
		return <-done
	})}
	t.Cleanup(func() { p.stop() })
	for s := bufio.NewScanner(r); p.endpoint == ""; {
		if !s.Scan() {
			t.Fatal("the program says nothing: ", s.Err())
		}
		if rest, ok := strings.CutPrefix(s.Text(), "clock: "); ok {
			p.clock, _, _ = strings.Cut(rest, " ")
		} else if _, rest, ok := strings.Cut(s.Text(), "BlobEndpoint="); ok {
			p.endpoint = strings.TrimSuffix(rest, ";")
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return p
}

func (p *program) do(status int, method, url string, h ...string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, url, strings.NewReader(""))
	if err != nil {
		p.t.Fatal(err)
	}
	for i := 0; i+1 < len(h); i += 2 {
		r.Header.Set(h[i], h[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != status {
		p.t.Fatalf("%s %s: %s %s, want %d", method, url, res.Status, body, status)
	}
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

// A clock that is at its end says so.
func TestEndOfTime(t *testing.T) {
	clock := blobtest.NewClock(time.Now())
	for _, want := range []int{200, 200, 400} {
		w := httptest.NewRecorder()
		clockHandler{clock}.ServeHTTP(w, httptest.NewRequest("POST", clockPath+"?advance=1281023h", nil)) // half of all
		if w.Code != want {
			t.Errorf("%d, want %d, at %v", w.Code, want, clock.Now())
		}
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

// The package's documentation lists the flags there are.
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
	told := regexp.MustCompile(`(?m)^\t(-\S+(?: \S+)?)  `).FindAllStringSubmatch(f.Doc.Text(), -1)
	same := func(a, b []string) bool { return a[1] == b[1] }
	if len(there) == 0 || !slices.EqualFunc(there, told, same) {
		t.Errorf("told are %q, want %q", told, there)
	}
}

// Bad arguments end the program with an error that names them.
func TestBadArguments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-clock fast", "-clock fast"},
		{"-account nokey", "name:key"},
		{"-account UPPER:a2V5", "Options.Accounts"},
		{"left over", `"left"`},
		{"-addr 256.0.0.1:1", "256.0.0.1"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := run(ctx, strings.Fields(c.args), io.Discard, io.Discard)
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %s", c.args, err, c.want)
		}
	}
}

// An interrupt waits for a client that is in the middle of a request, and for one that has sent
// nothing, but not for ever; and it is no error that they came to nothing.
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
			l, done := pipes.Listen(), make(chan error, 1)
			go func() { done <- serve(ctx, h, l) }()
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
			if d := time.Since(begin); d != grace {
				t.Errorf("%s: it ended after %v, want %v", name, d, grace)
			}
		})
	}
}
