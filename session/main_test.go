package session_test

import (
	"log/slog"
	"os"
	"testing"
)

// The tests make many requests fail, and log records of failed requests would hide the results.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
