package session_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/session"
)

// brittle is an authority that panics.
type brittle struct {
	lease.Authority
	at lease.Action
}

func (b brittle) Do(ctx context.Context, name string, req lease.Request) (lease.Result, error) {
	if req.Action == b.at {
		panic("brittle " + req.Action.String())
	}
	return b.Authority.Do(ctx, name, req)
}

// A panic of an Authority or a hook ends the process, even if the caller recovers. A panic of a
// handler does not end the process. Each case runs in a process of its own.
func TestPanics(t *testing.T) {
	const variable = "LEASE_TEST_PANIC"
	hold := map[string]func(){
		"acquire": func() { panics(brittle{at: lease.ActionAcquire}, nil, nil) },
		"renew":   func() { panics(brittle{at: lease.ActionRenew}, nil, nil) },
		"release": func() { panics(brittle{at: lease.ActionRelease}, nil, nil) },
		"read":    func() { panics(brittle{at: lease.ActionRead}, nil, nil) },
		"hook": func() {
			panics(brittle{}, &session.Trace{Renew: func(session.RenewInfo) { panic("brittle hook") }}, nil)
		},
		"handler": func() { panics(brittle{}, nil, func(error) { panic("brittle handler") }) },
	}
	if f := hold[os.Getenv(variable)]; f != nil {
		f()
		os.Exit(0)
	}
	for name := range hold {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanics$")
			c.Env = append(os.Environ(), variable+"="+name)
			out, err := c.CombinedOutput()
			if died := err != nil; died != (name != "handler") || !strings.Contains(string(out), "brittle "+name) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// lines is a Writer that sends each line to a channel.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// panics acquires a lease, waits for a renewal, and releases or loses the lease.
func panics(a brittle, trace *session.Trace, handler func(error)) {
	defer func() { _ = recover() }()
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
	}
	a.Authority = lease.NewAuthority(memory.New(nil))
	s, err := session.New(a, name, &session.Options{RenewInterval: time.Millisecond, Trace: trace})
	check(err)
	logged := make(chan string, 1)
	slog.SetDefault(slog.New(slog.NewTextHandler(lines(logged), nil)))
	if handler != nil {
		s.OnLost(handler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = s.Acquire(ctx)
	check(err)
	switch {
	case a.at == lease.ActionRelease:
		check(s.Release(ctx))
	case a.at == lease.ActionRead:
		check(s.Wait(ctx))
	case handler == nil:
		<-ctx.Done()
	default:
		_, err := lease.Break(ctx, a, name, lease.Grace(0))
		check(err)
		for line := ""; !strings.Contains(line, "brittle handler"); fmt.Print(line) {
			line = <-logged
		}
		check(s.Close(ctx))
	}
}
