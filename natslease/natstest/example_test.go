package natstest

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/fencedlease/lease/internal/check/enginetest"
)

// The example program does what its documentation says. Without a server, it says what is wrong.
func TestExample(t *testing.T) {
	t.Parallel()
	program := enginetest.Build(t, "..", "takeover")
	enginetest.TakesOver(t, program, "-server", shared.url())
	out, err := exec.CommandContext(t.Context(), program, "-server", "127.0.0.1:1").CombinedOutput()
	if err == nil {
		t.Error("it ended without an error")
	}
	if want := "no NATS at 127.0.0.1:1: nats: no servers available for connection; start nats-server -js, or give -server"; !strings.Contains(string(out), want) {
		t.Errorf("it said %q, without %q", out, want)
	}
}
