package etcdtest

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
	enginetest.TakesOver(t, program, "-endpoints", shared.Client)
	out, err := exec.CommandContext(t.Context(), program, "-endpoints", "127.0.0.1:1").CombinedOutput()
	if err == nil {
		t.Error("it ended without an error")
	}
	if want := "no answer in time from 127.0.0.1:1: check that the endpoints are correct"; !strings.Contains(string(out), want) {
		t.Errorf("it said %q, without %q", out, want)
	}
}
