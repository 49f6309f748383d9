package redislease_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/redislease"
)

// SPEC S4: the time of a store never falls.
func TestClockSetBack(t *testing.T) {
	c := client(t, shared.Addr())
	s := store(t, c, &redislease.Options{Prefix: prefix(t)})
	open := func(t testing.TB) enginetest.Store { return store(t, c, &redislease.Options{Prefix: prefix(t)}) }
	enginetest.ClockSetBack(t, open, func() {
		for _, name := range []string{"crashed", "held"} {
			for _, field := range []string{"time", "until"} {
				at, err := time.Parse(layout, c.HGet(t.Context(), s.Key(name), field).Val())
				if err = errors.Join(err, c.HSet(t.Context(), s.Key(name), field, at.Add(time.Hour).Format(layout)).Err()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
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
