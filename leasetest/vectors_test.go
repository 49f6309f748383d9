package leasetest

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fencedlease/lease/internal/vectors"
)

func mustVectors(t *testing.T) vectors.Vectors {
	t.Helper()
	all, err := vectors.Parse(Vectors())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every scenario says what it needs, and is of a clause. Every row is of a clause.
func TestVectorsAreComplete(t *testing.T) {
	names := map[string]string{}
	for _, s := range scenarios(mustVectors(t), false) {
		if len(s.steps) == 0 || len(s.spec) == 0 || s.name == "" {
			t.Errorf("%s: a scenario needs a name, a clause and a step", s.where)
		}
		if other, ok := names[s.name]; ok {
			t.Errorf("%s: %q is the name of %s too", s.where, s.name, other)
		}
		names[s.name] = s.where
		if missing := s.inferAbilities() &^ s.needs; missing != 0 {
			t.Errorf("%s: %s needs %v", s.where, s.name, missing)
		}
		for i, step := range s.steps {
			if i > 0 && step.At < s.steps[i-1].At {
				t.Errorf("%s: %s: time goes back", s.where, s.name)
			}
		}
	}
	for _, s := range mustVectors(t).Scenarios {
		for _, word := range s.Needs {
			if needs[word] == 0 {
				t.Errorf("%s: unknown need %q", s.Where, word)
			}
		}
	}
}

// The format is described, file by file, with the states that scenarios begin in.
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
	for _, state := range vectors.States() {
		if !strings.Contains(string(readme), "\n| "+state+" |") {
			t.Errorf("the state %s is not described", state)
		}
	}
	var used []string
	for _, s := range scenarios(mustVectors(t), true) {
		for _, step := range s.steps {
			used = append(used, step.Want.Code.String())
		}
	}
	slices.Sort(used)
	for _, code := range slices.Compact(used) {
		if code != "Code(0)" && !strings.Contains(string(readme), "`"+code+"`") {
			t.Errorf("the code %v is not described", code)
		}
	}
	for need := range needs {
		if !strings.Contains(string(readme), "`"+need+"`") {
			t.Errorf("the need %s is not described", need)
		}
	}
}

func TestVectorsThatDoNotParse(t *testing.T) {
	for text, want := range map[string]string{
		"0s read => ok available":                                             "outside of a row and of a scenario",
		"scenario x\nread => ok available":                                    "a step needs a time",
		"scenario x\n0s read":                                                 "a step needs a time",
		"scenario x\n0 read => ok available":                                  "not a number of seconds",
		"scenario x\n0s look => ok available":                                 "unknown action",
		"scenario x\n0s read id=D => ok available":                            "unknown ID",
		"scenario x\n0s read size=1 => ok available":                          "unknown argument",
		"scenario x\n0s read => fine available":                               "unknown code",
		"scenario x\n0s read => ok free":                                      "unknown state",
		"scenario x\n0s read => ok available size=1":                          "unknown field",
		"scenario x\n0s read => ok available epoch=-1":                        "invalid syntax",
		"scenario x\n0s read => ok":                                           "an outcome needs",
		"now soon":                                                            "cannot parse",
		"scenario x\ngiven bliss":                                             "unknown state",
		"record leased id=A epoch=1":                                          "Record.Duration",
		"row x\nrequest read\nleased | | ok leased | |":                       "a cell needs a record",
		"record available\n\nrow x\nrequest read\navailable | | ok available": "a cell needs a record and five columns",
	} {
		_, err := vectors.Parse(fstest.MapFS{"v.txt": {Data: []byte(text)}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "v.txt:") {
			t.Errorf("%q: %v; want %q, with file and line", text, err, want)
		}
	}
}
