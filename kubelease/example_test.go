package kubelease_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fencedlease/lease/internal/check/kubeserver"
	"github.com/fencedlease/lease/internal/check/shorthand"
)

// The example program moves from client-go's elector to this library, and never has two leaders.
func TestRollingExample(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "https://%s", insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, shared.Address, kubeserver.Admin)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), shorthand.Build(t, ".", "rolling"),
		"-kubeconfig", kubeconfig, "-namespace", namespace, "-name", objectOf(t)).CombinedOutput()
	t.Logf("\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.Contains(text, "old-") || !regexp.MustCompile(`new-\d leads, token \d{20}`).MatchString(text) {
		t.Error("not both kinds have led")
	}
}
