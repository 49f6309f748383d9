package session_test

import (
	"log/slog"
	"os"
	"testing"
)

// The tests fail requests all the time: nobody wants to read of it.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
