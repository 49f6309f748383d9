package leasetest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/leasetest"
	"github.com/fencedlease/lease/session"
)

// keeper never releases its lease.
type keeper struct{ *session.Session }

func (keeper) Release(context.Context) error { return nil }

// TestPicture runs itself as a process in which a lease is wrong: its failures draw timelines.
func TestPicture(t *testing.T) {
	if os.Getenv("LEASETEST_PICTURE") != "" {
		leasetest.TestLease(t, func(t testing.TB, h leasetest.Holder) lease.Lease {
			return keeper{newSession(t, h).(*session.Session)}
		}, &leasetest.Options{Bubble: true, Can: leasetest.CanUseAuthority})
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestPicture$/^H(13|15)$", "-test.artifacts", "-test.outputdir="+dir)
	cmd.Env = append(os.Environ(), "LEASETEST_PICTURE=1")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the wrong lease passes:\n%s", out)
	}
	_, rest, ok := strings.Cut(string(out), "timeline: ")
	file, _, _ := strings.Cut(rest, "\n")
	if !ok || !strings.HasPrefix(file, dir) || filepath.Base(file) != "timeline.svg" {
		t.Fatalf("a failure names the timeline %q, which must be in %s:\n%.5000s", file, dir, out)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`class="leased `, `class="believes `, "is violated"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the timeline has no %s:\n%s", want, svg)
		}
	}
}
