package kubelease_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/processes"
	"github.com/fencedlease/lease/session"
)

// elector26 builds the program with the elector of client-go v0.26, only once.
var elector26 = sync.OnceValues(func() (string, error) {
	program := filepath.Join(scratch, "elector26")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "elector26"
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

// An oldElector is an elector of client-go v0.26 in a separate process.
type oldElector struct {
	process        *processes.Process
	leads          atomic.Bool
	started, ended chan struct{}
}

func startOldElector(t *testing.T, name, identity string, duration time.Duration, release bool) *oldElector {
	t.Helper()
	program, err := elector26()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-address", shared.Address, "-token", kubeserver.Admin, "-namespace", namespace, "-name", name, "-identity", identity,
		"-duration", duration.String(), "-deadline", (duration * 2 / 3).String(), "-retry", electorRetry.String(), fmt.Sprint("-release=", release))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e := &oldElector{started: make(chan struct{}), ended: make(chan struct{})}
	if e.process, err = processes.Run(cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(e.ended)
		defer e.leads.Store(false)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch lines.Text() {
			case "leads":
				e.leads.Store(true)
				close(e.started)
			case "stops":
				e.leads.Store(false)
			}
		}
	}()
	t.Cleanup(e.kill)
	return e
}

// stop ends the elector. An elector with ReleaseOnCancel then releases the lease.
func (e *oldElector) stop(t *testing.T) {
	if err := e.process.End(); err != nil {
		t.Error(err)
	}
	<-e.ended
}

func (e *oldElector) kill() {
	e.process.Kill()
	<-e.ended
}

// An elector of client-go v0.26 and a holder of this library replace each other in turns, after a
// release and after a death. They never lead at the same time, and each grant of this library has a
// newer token.
func TestOldElector(t *testing.T) {
	t.Parallel()
	name := objectOf(t)
	var newest lease.Token
	for i, death := range []bool{false, true, false, true} {
		var w way
		s := newSession(t, store(t, client(t, shared.Address, w.wrap), nil).Authority(), name, "ours", false)
		tok, err := session.AcquireWait(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Compare(newest) <= 0 {
			t.Errorf("token %s after %s", tok, newest)
		}
		newest = tok
		e := startOldElector(t, name, fmt.Sprint("old-", i), electorDuration, !death)
		time.Sleep(electorDuration + electorDuration/2)
		if e.leads.Load() || !s.CheckAlive() {
			t.Fatalf("after one and a half durations the elector leads: %v, and we hold: %v", e.leads.Load(), s.CheckAlive())
		}
		ended := time.Now()
		if death {
			w.cut.Store(true)
		} else {
			eventually(t, "our release", s.Release)
		}
		for !e.leads.Load() && time.Since(ended) < soon {
			time.Sleep(time.Millisecond)
		}
		if s.CheckAlive() {
			t.Error("two believe")
		}
		t.Logf("it leads %v after our end, by death: %v", time.Since(ended), death)
		next := newSession(t, newStore(t).Authority(), name, "ours", false)
		held := acquireWait(t, next)
		time.Sleep(electorDuration)
		select {
		case <-held:
			t.Fatal("we hold while the elector leads")
		default:
		}
		ended = time.Now()
		if death {
			e.kill()
		} else {
			e.stop(t)
		}
		t.Logf("we hold %v after its end, by death: %v", await(t, "we hold", held).Sub(ended), death)
		eventually(t, "our release", next.Release)
	}
}

// The test shows a weakness of client-go before v0.27: an elector replaces a holder after the
// elector's own LeaseDuration, even if the holder has a longer duration.
func TestOldElectorWaitsForItsOwnDuration(t *testing.T) {
	t.Parallel()
	name := objectOf(t)
	s, err := newStore(t).Lease(name, &session.Options{Duration: lease.Infinite})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	mustAcquire(t, s)
	if object := get(t, client(t, shared.Address), name); !strings.HasPrefix(*object.Spec.HolderIdentity, s.Owner()) {
		t.Fatalf("the holder is %q", *object.Spec.HolderIdentity)
	}
	current := startElector(t, name, "current", false)
	old := startOldElector(t, name, "old", electorDuration, false)
	await(t, "the old elector leads", old.started)
	if current.leads() || !s.CheckAlive() {
		t.Errorf("the current elector leads: %v, and we believe: %v", current.leads(), s.CheckAlive())
	}
}
