package leasetest

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

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
	var words []string
	for _, file := range files {
		words = append(words, "| `"+file+"` |")
	}
	for _, state := range vectors.States() {
		words = append(words, "\n| "+state+" |")
	}
	for need := range needs {
		words = append(words, "`"+need+"`")
	}
	for _, s := range scenarios(mustVectors(t), true) {
		for _, step := range s.steps {
			if step.Want.Code != 0 {
				words = append(words, "`"+step.Want.Code.String()+"`")
			}
		}
	}
	slices.Sort(words)
	for _, word := range slices.Compact(words) {
		if !strings.Contains(string(readme), word) {
			t.Errorf("README.md does not describe %q", word)
		}
	}
}
