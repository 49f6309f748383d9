package azlease

import (
	"strings"
	"testing"

	"github.com/fencedlease/lease"
)

// CheckName refuses a name that the service or a client might change, and accepts all other names.
func TestCheckName(t *testing.T) {
	for _, name := range []string{
		"a", "jobs/nightly", "a b", "ümläut/日本", ".hidden", "a..b/c", "100%", "a?b#c&d=e+f", "lease-floor/a", "Lease-floor",
		strings.Repeat("a", 1024), strings.Repeat("a/", 253) + "a", "😀",
	} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, says := range map[string]string{
		"":                              "1 to 1024 bytes",
		strings.Repeat("a", 1025):       "1 to 1024 bytes",
		"a\xff":                         "UTF-8",
		FloorBlob:                       "floor of the tokens",
		strings.Repeat("a/", 254) + "a": "254 segments",
		" a":                            "white space",
		"a\u00a0":                       "white space",
		`a\b`:                           "backslash",
		"a\x1fb":                        "control character",
		"a\u0085b":                      "control character",
		"a\uffffb":                      "noncharacter",
		"a\ufdd0":                       "noncharacter",
		"/a":                            "empty",
		"a/":                            "empty",
		"a//b":                          "empty",
		"a/.":                           "ends with a dot",
		"../a":                          "ends with a dot",
		"a.":                            "ends with a dot",
		"a./b":                          "ends with a dot",
	} {
		if err := CheckName(name); lease.CodeOf(err) != lease.ErrName || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want an error that says %q", name, err, says)
		}
	}
}

// parseDuration reads each text that durationText writes, and returns an error for every other text.
func TestDurationText(t *testing.T) {
	for _, s := range []string{"15s", "60s", "37s", "infinite"} {
		if d, err := parseDuration(s); err != nil || durationText(d) != s {
			t.Errorf("%q is read as %v, %v", s, d, err)
		}
	}
	for _, s := range []string{"", "s", "14s", "61s", "-15s", "+15s", "015s", "15", "1m", "9999999999999s", "Infinite"} {
		if d, err := parseDuration(s); err == nil {
			t.Errorf("%q is read as %v", s, d)
		}
	}
}
