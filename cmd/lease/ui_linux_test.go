package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// lease ui prints the address of a page, which shows the leases and may break them only with -break.
func TestUI(t *testing.T) {
	holding(t, "ui/x")
	for breaks, args := range map[bool]string{false: "ui ui/", true: "ui -break -port 0 ui/"} {
		cmd := exec.CommandContext(t.Context(), binary, append(strings.Fields(args), "-store", url)...)
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan()
		resp, err := http.Get(lines.Text() + "leases.json")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		for _, want := range []string{fmt.Sprintf(`"Break":%v`, breaks), `"Name":"ui/x","State":"leased"`, `"Enough":`} {
			if err != nil || !strings.Contains(string(body), want) {
				t.Errorf("%s: no %s in %s, %v", args, want, body, err)
			}
		}
		_, _, _ = resp.Body.Close(), cmd.Process.Kill(), cmd.Wait()
	}
	for _, args := range []string{"ui a b", "ui -port 65536", "ui -interval 1ms"} {
		if _, stderr, code := run(t, url, strings.Fields(args)...); code != 64 {
			t.Errorf("%s: %d, %s", args, code, stderr)
		}
	}
}
