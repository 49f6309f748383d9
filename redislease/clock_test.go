package redislease_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/redislease"
)

// The clock of the server was set back by an hour, and the holder crashed. A waiter gets the lease after
// its duration, though the clock reaches the end of the lease in an hour. A holder that renews keeps it.
func TestClockSetBack(t *testing.T) {
	var logged bytes.Buffer // the store warns once a minute, so this test reads it at the end
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	c := client(t, shared.Addr())
	o := &redislease.Options{Prefix: prefix(t)}
	watching := store(t, c, o)
	holder, other := store(t, c, o).Authority(), watching.Authority()
	const layout = "2006-01-02T15:04:05.000000000Z"
	for _, name := range []string{"crashed", "held"} {
		do(t, store(t, c, o).Authority(), name, acquire(idA, 2*time.Second), 0)
		key := watching.Key(name)
		for _, field := range []string{"time", "until"} { // as if the clock had been an hour ahead until now
			text, err := c.HGet(t.Context(), key, field).Result()
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(layout, text)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.HSet(t.Context(), key, field, at.Add(time.Hour).Format(layout)).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := time.Now()
	for taken := false; !taken; time.Sleep(100 * time.Millisecond) { // a real engine
		do(t, holder, "held", renew(idA), 0)
		do(t, other, "held", acquire(idB, time.Minute), lease.ErrHeldByOther)
		for e, err := range watching.List(t.Context(), "held") {
			if err != nil || e.Record.State != lease.Leased {
				t.Errorf("%+v, %v", e, err)
			}
		}
		res, err := other.Do(t.Context(), "crashed", acquire(idB, 2*time.Second))
		if taken = err == nil; time.Since(began) > time.Minute {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if res, err := lease.Inspect(t.Context(), other, "crashed"); err != nil || res.Record.Until.Sub(res.Now) > 2*time.Second {
		t.Errorf("the new lease of 2s ends in %v, %v", res.Record.Until.Sub(res.Now), err)
	}
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("a lease of 2s was taken over after %v", took)
	}
	if n := strings.Count(logged.String(), "clock of the Redis server is behind its records"); n < 1 || n > 2 { // of two stores
		text := logged.String()
		t.Errorf("logged %q", text)
	}
}

// A server that loads its data after a restart says that it keeps no append-only file, even if it does.
func TestNoWarningWhileLoading(t *testing.T) {
	var logged bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, nil)))
	s := store(t, client(t, shared.Addr()), nil)
	for _, c := range []struct {
		loading, enabled string
		warnings         int
	}{{"1", "0", 0}, {"0", "1", 0}, {"1", "0", 0}, {"0", "0", 1}, {"0", "0", 1}} {
		s.WarnIfForgetful("# Persistence\r\nloading:" + c.loading + "\r\naof_enabled:" + c.enabled + "\r\n")
		if n := strings.Count(logged.String(), "append-only"); n != c.warnings {
			t.Errorf("loading %s, enabled %s: %d warnings, want %d", c.loading, c.enabled, n, c.warnings)
		}
	}
}
