package planted

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

var names = flag.String("planted", "", "plant the bugs whose names match")

// Chosen reports whether the name of a bug matches -planted.
func Chosen(name string) bool { return *names != "" && regexp.MustCompile(*names).MatchString(name) }

// Run checks that every bug fits the sources in the current folder: each has the name, the file, the old code and
// the new one. With -planted, it also builds the bugs whose names match, and runs the tests of the package with
// each, besides those whose names match Planted. They must fail. The arguments are those of the test binary.
func Run(t *testing.T, bugs [][4]string, arguments ...string) {
	var all, chosen []Bug
	for _, row := range bugs {
		b := Bug{row[0], row[1], row[2], row[3]}
		if all = append(all, b); Chosen(b.Name) {
			chosen = append(chosen, b)
		}
	}
	for _, err := range Check(all) {
		t.Error(err)
	}
	builds, err := Builds(t.TempDir(), chosen)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range chosen {
		t.Run(b.Name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), builds[i].Binary, append([]string{"-test.timeout", "120s", "-test.failfast", "-rapid.nofailfile", "-test.skip", "Planted"}, arguments...)...)
			cmd.Env = append(os.Environ(), builds[i].Env...)
			out, err := cmd.CombinedOutput()
			finder := regexp.MustCompile(`--- FAIL: \w+|panic: .*|fatal error: .*`).FindString(string(out))
			if t.Log(finder); err == nil || finder == "" {
				t.Errorf("not found: %v\n%s", err, out)
			}
		})
	}
}
