package natslease

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// validKey matches the keys that the documents of NATS allow: parts of these characters, divided by dots.
var validKey = regexp.MustCompile(`^[-/_=a-zA-Z0-9]+(\.[-/_=a-zA-Z0-9]+)*$`)

// SPEC S6: each name has its own key, and the key is valid.
func TestKeys(t *testing.T) {
	for name, want := range map[string]string{
		"jobs/nightly":   "jobs/nightly",
		"team-a.jobs_7":  "team-a.jobs_7",
		"a..b":           "a.=2Eb",
		".":              "=2E",
		"..":             "=2E=2E",
		"a.":             "a=2E",
		".a":             "=2Ea",
		"a b":            "a=20b",
		"a=20b":          "a=3D20b",
		"*":              "=2A",
		"a.>":            "a.=3E",
		"$KV.leases.x":   "=24KV.leases.x",
		"_kv.x":          "=5Fkv.x",
		"_kw":            "_kw",
		"é":              "=C3=A9",
		"=confirm":       "=3Dconfirm",
		"line\nand\ttab": "line=0Aand=09tab",
	} {
		if got := encode(name); got != want {
			t.Errorf("%q has the key %q, want %q", name, got, want)
		}
	}
}

func TestForeignKeys(t *testing.T) {
	for _, key := range []string{confirmKey, "=", "=2", "=zz", "=2e", "a=41", "=FF", "=00", "a.=2Ab.", "_kv", "a b", strings.Repeat("a", fields.MaxLabel+1)} {
		if name, ok := decode(key); ok {
			t.Errorf("%q is taken for the key of %q", key, name)
		}
	}
}

func FuzzKeys(f *testing.F) {
	for _, name := range []string{"a", "a.b", "..", "_kv", "=2E", "é*>", strings.Repeat(".", 9)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if lease.CheckName(name) != nil {
			return
		}
		key := encode(name)
		if !validKey.MatchString(key) || strings.HasPrefix(key, "_kv") {
			t.Errorf("%q has the key %q, which is not valid", name, key)
		}
		if got, ok := decode(key); !ok || got != name {
			t.Errorf("%q is kept under %q, which is read as %q, %v", name, key, got, ok)
		}
	})
}
