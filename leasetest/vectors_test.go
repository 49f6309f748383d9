package leasetest

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func mustVectors(t *testing.T) []scenario {
	t.Helper()
	all, err := parseVectors(Vectors())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every scenario says what it needs, and is of a clause.
func TestVectorsAreComplete(t *testing.T) {
	names := map[string]string{}
	for _, v := range mustVectors(t) {
		if len(v.steps) == 0 || len(v.spec) == 0 || v.name == "" {
			t.Errorf("%s: a scenario needs a name, a clause and a step", v.file)
		}
		if other, ok := names[v.name]; ok {
			t.Errorf("%s: %q is the name of %s too", v.file, v.name, other)
		}
		names[v.name] = v.file
		if missing := v.inferred() &^ v.needs; missing != 0 {
			t.Errorf("%s: %s needs %v", v.file, v.name, missing)
		}
		for i, s := range v.steps {
			if i > 0 && s.at < v.steps[i-1].at {
				t.Errorf("%s: %s: time goes back", v.file, v.name)
			}
		}
	}
}

func TestMalformedVectors(t *testing.T) {
	for text, want := range map[string]string{
		"0s read => ok available":                      "outside of a scenario",
		"scenario x\nread => ok available":             "a step needs a time",
		"scenario x\n0s read":                          "a step needs a time",
		"scenario x\n0 read => ok available":           "not a number of seconds",
		"scenario x\n0s look => ok available":          "unknown action",
		"scenario x\n0s read id=D => ok available":     "unknown ID",
		"scenario x\n0s read size=1 => ok available":   "unknown argument",
		"scenario x\n0s read => fine available":        "unknown code",
		"scenario x\n0s read => ok free":               "unknown state",
		"scenario x\n0s read => ok available size=1":   "unknown field",
		"scenario x\n0s read => ok available epoch=-1": "invalid syntax",
		"scenario x\nneeds luck":                       "unknown need",
		"scenario x\ngiven bliss":                      "unknown state",
		"bliss: read => ok available":                  "unknown state",
	} {
		_, err := parseVectors(fstest.MapFS{"v.txt": {Data: []byte(text)}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "v.txt:") {
			t.Errorf("%q: %v; want %q, with file and line", text, err, want)
		}
	}
}

// The format is described, file by file, with the very set-ups that the runner uses.
func TestVectorsAreDescribed(t *testing.T) {
	readme, err := fs.ReadFile(Vectors(), "README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(Vectors(), "*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if !strings.Contains(string(readme), "| `"+file+"` |") {
			t.Errorf("%s is not described", file)
		}
	}
	for state := range setups {
		if !strings.Contains(string(readme), "\n| "+state+" |") {
			t.Errorf("the state %s is not described", state)
		}
	}
	for _, v := range mustVectors(t) {
		for _, s := range v.steps {
			if code := s.want.code; code != 0 && !strings.Contains(string(readme), "`"+code.String()+"`") {
				t.Errorf("%s: the code %v is not described", v.file, code)
			}
		}
	}
	for need := range needs {
		if !strings.Contains(string(readme), "`"+need+"`") {
			t.Errorf("the need %s is not described", need)
		}
	}
}
