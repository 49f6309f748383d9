package leasetest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every rule and every vector is of a clause that SPEC.md has, and no two rules of a suite have one name. Every
// clause is of a rule or a vector, or PEERS.md says why it is of none. The list of the peers' cases in PEERS.md
// names rules that there are.
func TestRulesClausesAndPeers(t *testing.T) {
	spec, err := os.ReadFile("../SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	clauses, has, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^- \*\*([A-Z][0-9]+)\*\*`).FindAllStringSubmatch(string(spec), -1) {
		clauses[m[1]] = true
	}
	for kind, rules := range map[string][]rule{"store": storeRules, "authority": allAuthorityRules(), "lease": leaseRules, "guard": guardRules, "step": stepRules} {
		seen := map[string]bool{}
		for _, r := range rules {
			if !clauses[r.clause()] {
				t.Errorf("%s: %s: SPEC.md has no clause %s", kind, r.name, r.clause())
			}
			if seen[r.name] || r.says == "" || strings.ContainsAny(r.name, " \t") {
				t.Errorf("%s: %s: a rule has a name of its own, without spaces, and says what it is", kind, r.name)
			}
			seen[r.name], names[r.name], has[r.clause()] = true, true, true
		}
	}
	for _, s := range scenarios(mustVectors(t), true) {
		for _, clause := range s.spec {
			if has[clause] = true; !clauses[clause] {
				t.Errorf("%s: SPEC.md has no clause %s", s.where, clause)
			}
		}
	}
	peers, err := os.ReadFile("PEERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(peers), "## What no rule checks")
	without, _, _ := strings.Cut(text, "in part:")
	excused := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ((?:[A-Z]\d+ ?)+)\|`).FindAllStringSubmatch(without, -1) {
		for _, clause := range strings.Fields(row[1]) {
			if excused[clause] = true; !clauses[clause] {
				t.Errorf("PEERS.md: SPEC.md has no clause %s", clause)
			}
		}
	}
	for clause := range clauses {
		if has[clause] == excused[clause] {
			t.Errorf("%s: it has a rule: %v; PEERS.md says that it has none: %v", clause, has[clause], excused[clause])
		}
	}
	rows := regexp.MustCompile("(?m)\\| `([^`]+)` \\|$").FindAllStringSubmatch(string(peers), -1)
	if len(rows) < 40 {
		t.Errorf("%d cases are listed", len(rows))
	}
	for _, row := range rows {
		if !names[row[1]] {
			t.Errorf("PEERS.md: there is no rule %s", row[1])
		}
	}
}

// A rule that is skipped because of anything but exact time that Options.Lacks does not contain fails.
func TestLacks(t *testing.T) {
	for _, c := range []struct {
		lacks []string
		want  int
	}{{nil, 0}, {[]string{}, 2}, {[]string{"CanBreak"}, 1}, {[]string{"a method List", "CanBreak"}, 0}} {
		s := &suite{options: (&Options{Lacks: c.lacks}).withDefaults()}
		rec := &recorder{TB: t}
		rec.run(func() { s.skip(rec, storeRules[0], CanBreak|hasList|exactTime) })
		if len(rec.messages) != c.want || !rec.skipped {
			t.Errorf("Lacks %q: %q, want %d messages", c.lacks, rec.messages, c.want)
		}
	}
}
