package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/jitter"
	"github.com/fencedlease/lease/memory"
)

var update = flag.Bool("update", false, "write output.txt and timeline.svg again")

// The program prints output.txt, of which README.md shows a part, and README.md shows timeline.svg, which is
// drawn from the same run. The times of renewals are random, so the times that the program prints differ a
// little from run to run, but not in this test.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &picture{began: time.Now()}
		store := memory.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		observed := make(chan error)
		go func() { observed <- observe(ctx, p, store.Authority()) }()
		err := run(ctx, store, tee{&out, p}, jitter.Steady{IDs: rand.Reader})
		time.Sleep(100 * time.Millisecond)
		cancel()
		if err := errors.Join(err, <-observed); err != nil {
			t.Error(err)
		}
		for file, got := range map[string][]byte{"output.txt": out.Bytes(), "timeline.svg": p.svg(time.Now())} {
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Error(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs, and -update writes it again: %v, got\n%s", file, err, got)
			}
		}
	})
}

// observe shows the picture the state of the lease until ctx ends. It reads at times at which nothing else
// happens.
func observe(ctx context.Context, p *picture, a lease.Authority) error {
	for {
		time.Sleep(7*time.Millisecond + time.Nanosecond)
		if ctx.Err() != nil {
			return nil
		}
		res, err := lease.Inspect(ctx, a, "quickstart")
		if err != nil {
			return err
		}
		p.see(res.Record.State.Locked(), short(res.Record.Token()), res.Record.Until, time.Now())
	}
}

// A tee shows the picture each line that the program prints.
type tee struct {
	*bytes.Buffer
	p *picture
}

func (w tee) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(string(line), "s  ")
	text, _, _ = strings.Cut(strings.Trim(text, "- \n"), ": fencing: ")
	who, what, _ := strings.Cut(text, " ")
	if strings.HasPrefix(text, "a write of alice ") {
		who, what = "alice", text
	}
	w.p.note(who, what, time.Now())
	return w.Buffer.Write(line)
}
