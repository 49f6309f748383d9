package kubelease_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/kubelease"
)

func TestObjectNames(t *testing.T) {
	for name, want := range map[string]string{
		"leader":          "leader",
		"my-app.v2":       "my-app.v2",
		"jobs/nightly":    "x--jobs-2fnightly",
		"Leader":          "x---4ceader",
		"a_b-c":           "x--a-5fb-2dc",
		"-a":              "x---2da",
		"a.":              "x--a-2e",
		"x--a":            "x--x-2d-2da",
		"ä":               "x---c3-a4",
		"jobs/nightly\n":  "x--jobs-2fnightly-0a",
		"xn--mnchen-3ya":  "xn--mnchen-3ya",
		"9to5.example.io": "9to5.example.io",

		strings.Repeat("n", 253): strings.Repeat("n", 253),
		strings.Repeat("/", 83):  "x--" + strings.Repeat("-2f", 83),
	} {
		got, err := kubelease.ObjectName(name)
		if got != want || err != nil {
			t.Errorf("%q is kept as %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{strings.Repeat("a", 254), strings.Repeat("A", 84), "", "a\x00b", "\xff"} {
		_, err := kubelease.ObjectName(name)
		if lease.CodeOf(err) != lease.ErrName {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, object := range []string{"x--a", "x--", "x--a-2", "x--a-zz", "x---61", "x---4C"} {
		if name, ok := kubelease.LeaseName(object); ok {
			t.Errorf("%q keeps %q", object, name)
		}
	}
}

// SPEC S6: every name that the Store accepts has an object of its own, with a name that Kubernetes allows.
func TestObjectNamesAreInjective(t *testing.T) {
	names := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("ax-.Z/2f_"))))
	rapid.Check(t, func(t *rapid.T) {
		name := names.Draw(t, "name")
		object, err := kubelease.ObjectName(name)
		if err != nil {
			return
		}
		if bad := validation.IsDNS1123Subdomain(object); len(bad) > 0 {
			t.Fatalf("%q is kept as %q: %v", name, object, bad)
		}
		if again, ok := kubelease.LeaseName(object); !ok || again != name {
			t.Fatalf("%q is kept as %q, which is read as %q", name, object, again)
		}
		if len(validation.IsDNS1123Subdomain(name)) == 0 && object != name && !strings.HasPrefix(name, "x--") {
			t.Fatalf("%q is kept as %q although Kubernetes allows it", name, object)
		}
	})
}
