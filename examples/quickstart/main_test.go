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
	"github.com/fencedlease/lease/internal/timeline"
	"github.com/fencedlease/lease/memory"
)

var update = flag.Bool("update", false, "write output.txt and timeline.svg again")

// The program prints output.txt, of which README.md shows a part, and README.md shows timeline.svg. The
// times of renewals are random, so the times that the program prints differ a little from run to run, but
// not in this test.
func TestOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := &timeline.Drawing{Title: "alice loses its connection, and bob takes over"}
		d.Set("lease", time.Now(), timeline.None, "", time.Time{}) // the first lane
		store := memory.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		observed := make(chan error)
		go func() { observed <- drawLease(ctx, d, store.Authority()) }()
		err := run(ctx, store, drawLines{&out, d}, jitter.Steady{IDs: rand.Reader})
		time.Sleep(100 * time.Millisecond)
		cancel()
		if err := errors.Join(err, <-observed); err != nil {
			t.Error(err)
		}
		for file, got := range map[string][]byte{"output.txt": out.Bytes(), "timeline.svg": d.SVG(time.Now())} {
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

// drawLease draws the state of the lease until ctx ends. It reads at times at which nothing else happens.
func drawLease(ctx context.Context, d *timeline.Drawing, a lease.Authority) error {
	for {
		time.Sleep(7*time.Millisecond + time.Nanosecond)
		if ctx.Err() != nil {
			return nil
		}
		res, err := lease.Inspect(ctx, a, "quickstart")
		if err != nil {
			return err
		}
		kind := timeline.None
		if res.Record.State.Locked() {
			kind = timeline.Leased
		}
		d.Set("lease", time.Now(), kind, "token "+short(res.Record.Token()), time.Time{})
	}
}

// drawLines draws the lines that the program prints, except single writes.
type drawLines struct {
	*bytes.Buffer
	d *timeline.Drawing
}

func (w drawLines) Write(line []byte) (int, error) {
	_, text, _ := strings.Cut(string(line), "s  ")
	text, _, _ = strings.Cut(strings.Trim(text, "- \n"), ": fencing: ")
	name, what, now := "bob", strings.TrimPrefix(text, "bob "), time.Now()
	if strings.Contains(text, "alice") {
		name, what = "alice", strings.TrimPrefix(text, "alice ")
	}
	_, token, leads := strings.Cut(what, "leads, with ")
	cause, told := strings.CutPrefix(what, "is told to stop: ")
	switch {
	case leads:
		w.d.Set(name, now, timeline.Works, token, time.Time{})
	case told:
		w.d.Set(name, now, timeline.None, "", time.Time{})
		if cause != context.Canceled.Error() {
			w.d.Mark(name, now, timeline.Loss, what)
		}
	case what != "writes":
		w.d.Mark(name, now, timeline.Note, what)
	}
	return w.Buffer.Write(line)
}
