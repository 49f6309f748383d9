package leasetest

import (
	"io/fs"
	"os"
	"regexp"
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
	for need := range needs {
		if !strings.Contains(string(readme), "`"+need+"`") {
			t.Errorf("the need %s is not described", need)
		}
	}
}

// Every rule and every vector is of a clause that SPEC.md has, and no two have one name.
func TestRulesAreOfClauses(t *testing.T) {
	spec, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	clauses := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^- \*\*([A-Z][0-9]+)\*\*`).FindAllStringSubmatch(string(spec), -1) {
		clauses[m[1]] = true
	}
	for kind, rules := range map[string][]rule{"store": storeRules, "authority": allAuthorityRules(), "lease": leaseRules, "guard": guardRules} {
		seen := map[string]bool{}
		for _, r := range rules {
			if !clauses[r.clause()] {
				t.Errorf("%s: %s: SPEC.md has no clause %s", kind, r.name, r.clause())
			}
			if seen[r.name] || r.says == "" || strings.ContainsAny(r.name, " \t") {
				t.Errorf("%s: %s: a rule has a name of its own, without spaces, and says what it is", kind, r.name)
			}
			seen[r.name] = true
		}
	}
	for _, v := range mustVectors(t) {
		for _, clause := range v.spec {
			if !clauses[clause] {
				t.Errorf("%s: SPEC.md has no clause %s", v.file, clause)
			}
		}
	}
}

// The list of the peers' cases names rules that there are.
func TestPeersAreRules(t *testing.T) {
	list, err := os.ReadFile("PEERS.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, rules := range [][]rule{storeRules, allAuthorityRules(), leaseRules, guardRules} {
		for _, r := range rules {
			names[r.name] = true
		}
	}
	rows := regexp.MustCompile("(?m)\\| `([^`]+)` \\|$").FindAllStringSubmatch(string(list), -1)
	if len(rows) < 40 {
		t.Errorf("%d cases are listed", len(rows))
	}
	for _, row := range rows {
		if !names[row[1]] {
			t.Errorf("PEERS.md: there is no rule %s", row[1])
		}
	}
}

func TestAbilityNames(t *testing.T) {
	if got := (Watching | Durable).String(); got != "watching, durable" {
		t.Errorf("Watching | Durable is %q", got)
	}
	if got := Ability(0).String(); got != "nothing" {
		t.Errorf("0 is %q", got)
	}
	if got := Ability(1 << 31).String(); got != "unknown" {
		t.Errorf("1<<31 is %q", got)
	}
	for i, name := range abilityNames {
		if name == "" {
			t.Errorf("ability %d has no name", i)
		}
	}
}

// A history is as long as a message may be.
func TestHistoryIsBounded(t *testing.T) {
	var h History
	for range 1000 {
		h.Printf("something happened")
	}
	if lines := strings.Split(h.String(), "\n"); len(lines) != 61 || !strings.Contains(lines[0], "940 lines earlier") {
		t.Errorf("%d lines, the first is %q", len(lines), lines[0])
	}
}
