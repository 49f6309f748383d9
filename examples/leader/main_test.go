package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/memory"
)

// A service has a guard, and notes the token of each request that the guard admits.
type service struct {
	*httptest.Server
	tokens chan lease.Token
}

func newService(t *testing.T, guard *fencing.Guard) *service {
	s := &service{tokens: make(chan lease.Token, 100)}
	h, err := fencing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tok, err := fencing.DefaultHeader.Token(r.Header)
		if err != nil {
			t.Error(err)
		}
		s.tokens <- tok
	}), &fencing.Options{Guard: func(*http.Request) (*fencing.Guard, error) { return guard, nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// One of two machines works. When the first machine has stopped, the second machine works with a
// newer token.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newService(t, new(fencing.Guard))
	store := memory.New(nil)
	ended := make(chan error, 2)
	start := func() context.CancelFunc {
		ctx, stop := context.WithCancel(t.Context())
		go func() { ended <- run(ctx, store, s.URL) }()
		return stop
	}
	stopFirst := start()
	if tok := <-s.tokens; tok != lease.TokenOf(1) {
		t.Errorf("the first leads with token %s", tok)
	}
	stopSecond := start()
	stopFirst()
	for tok := range s.tokens { // the first machine may have sent one more request
		if tok == lease.TokenOf(2) {
			break
		}
	}
	stopSecond()
	for range 2 {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestMain runs the program itself in the processes that TestExitCode starts.
func TestMain(m *testing.M) {
	if os.Getenv("LEADER_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The program says that its leases are in memory. It exits with 1 after an error, and with 0 if it was
// stopped.
func TestExitCode(t *testing.T) {
	t.Parallel()
	s := newService(t, new(fencing.Guard))
	var said strings.Builder
	start := func(url string) *exec.Cmd {
		said.Reset()
		cmd := exec.Command(os.Args[0], "-url", url)
		cmd.Stderr = &said
		cmd.Env = append(os.Environ(), "LEADER_MAIN=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	bad := start("http://localhost:none/")
	if _ = bad.Wait(); bad.ProcessState.ExitCode() != 1 {
		t.Errorf("after an error: %v", bad.ProcessState)
	}
	stopped := start(s.URL)
	<-s.tokens
	if err := stopped.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := stopped.Wait(); err != nil {
		t.Errorf("stopped: %v", err)
	}
	if !strings.Contains(said.String(), "another process does not see them") {
		t.Errorf("the program does not say that its leases are in memory:\n%s", said.String())
	}
}

// If the service refuses a request of the leader, the leader contends again, and works with its
// next token.
func TestRefused(t *testing.T) {
	t.Parallel()
	guard := new(fencing.Guard)
	s := newService(t, guard)
	if err := guard.Advance(lease.TokenOf(2)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- run(ctx, memory.New(nil), s.URL) }()
	if tok := <-s.tokens; tok != lease.TokenOf(2) {
		t.Errorf("the service admitted token %s first", tok)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
