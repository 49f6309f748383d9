package redislease_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencedlease/lease/internal/check/shorthand"
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

// The example program does what its documentation says.
func TestExample(t *testing.T) {
	t.Parallel()
	url := "redis://" + ownServer(t).Addr()
	out, err := exec.CommandContext(t.Context(), shorthand.Build(t, ".", "guard"), "-url", url).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "is refused: fencing: stale token") {
		t.Errorf("%v\n%s", err, out)
	}
}
