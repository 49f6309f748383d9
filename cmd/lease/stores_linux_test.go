package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/cmd/lease/internal/servers"
)

// A store of each kind is opened by its URL, and the program runs, lists and breaks there.
func TestStores(t *testing.T) {
	urls, stop, err := servers.All(t.Context(), "../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, store := range urls {
		scheme, _, _ := strings.Cut(store, ":")
		duration := "6s"
		if scheme == "azblob" {
			duration = "15s" // the least that Azure grants
		}
		t.Run(scheme, func(t *testing.T) {
			out, stderr, code := run(t, store, "run", "-wait", "1m", "-duration", duration, "s/a", "--", "sh", "-c",
				`echo "$LEASE_TOKEN"; exec "$0" show -json s/a`, binary)
			token, shown, _ := strings.Cut(out, "\n")
			if all := rows(t, shown); code != 0 || len(all) != 1 || all[0].State != "leased" || all[0].Token != token {
				t.Fatalf("run: %d, %q %s", code, out, stderr)
			}
			if out, stderr, code := run(t, store, "run", "-wait", "1m", "-duration", duration, "-slots", "2", "n", "--", "sh", "-c", `echo "$LEASE_NAME"`); code != 0 || out != "n/slots/0\n" {
				t.Errorf("a slot: %d, %q %s", code, out, stderr)
			}
			for name, never := range map[string]bool{"s/a": false, "never": scheme != "azblob"} {
				if _, stderr, code := run(t, store, "show", name); code != 0 || strings.Contains(stderr, "was ever held") != never {
					t.Errorf("show %s: %d, %s", name, code, stderr)
				}
			}
			file := filepath.Join(t.TempDir(), "beats")
			holder := start(t, store, append([]string{"run", "-duration", duration, "s/b", "--"}, heartbeat(file)...)...)
			eventually(t, "the command runs", 10*time.Second, func() bool { return exists(file) })
			out, stderr, code = run(t, store, "ls", "-json", "s/")
			if all := rows(t, out); code != 0 || len(all) == 0 || all[len(all)-1].Name != "s/b" || all[len(all)-1].State != "leased" {
				t.Errorf("ls: %d, %s %s", code, out, stderr)
			}
			if _, stderr, code = run(t, store, "run", "-duration", duration, "s/b", "--", "true"); code != 75 {
				t.Errorf("a second holder: %d, %s", code, stderr)
			}
			if out, stderr, code = run(t, store, "break", "s/b", "-grace", "5s", "-yes"); code != 0 || !strings.Contains(out, "is free in") {
				t.Errorf("break: %d, %s %s", code, out, stderr)
			}
			if _, stderr, code = run(t, store, "run", "-duration", duration, "-wait", "1m", "s/b", "--", "true"); code != 0 {
				t.Errorf("after the break: %d, %s", code, stderr)
			}
			dead(t, file)
			_ = holder.Wait()
			if code := holder.ProcessState.ExitCode(); code != 76 {
				t.Errorf("the holder: %d, want 76", code)
			}
		})
	}
}
