package redislease_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/enginetest"
	"github.com/fencedlease/lease/redislease"
)

// The documentation and the README show this key.
func ExampleStore_Key() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	store, err := redislease.New(client, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	fmt.Println(store.Key("jobs/nightly"))
	// Output: lease:{9759}:jobs/nightly
}

// The example programs do what their documentation says.
func TestExamples(t *testing.T) {
	t.Parallel()
	url := "redis://" + ownServer(t).Addr()
	enginetest.TakesOver(t, enginetest.Build(t, ".", "takeover"), "-url", url)
	out, err := exec.CommandContext(t.Context(), enginetest.Build(t, ".", "guard"), "-url", url).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "is refused: fencing: stale token") {
		t.Errorf("%v\n%s", err, out)
	}
}

// If an example program cannot get the lease, it says why.
func TestExampleSaysWhatFails(t *testing.T) {
	t.Parallel()
	takeover := enginetest.Build(t, ".", "takeover")
	for _, url := range []string{"redis://127.0.0.1:1", "localhost:6379"} {
		if said, err := exec.CommandContext(t.Context(), takeover, "-url", url).CombinedOutput(); err == nil || !strings.Contains(string(said), url) || !strings.Contains(string(said), "-url") {
			t.Errorf("%s: %q, %v", url, said, err)
		}
	}
	server := ownServer(t, "--maxmemory-policy", "allkeys-lru")
	cmd := exec.CommandContext(t.Context(), takeover, "-url", "redis://"+server.Addr(), "-process", "first")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !strings.Contains(line, "maxmemory-policy allkeys-lru") {
		t.Errorf("%q, %v", line, err)
	}
}
