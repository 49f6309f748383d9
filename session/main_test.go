package session_test

import (
	"log/slog"
	"os"
	"testing"
)

// The tests make many requests fail, and the log records of that would hide the results.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
