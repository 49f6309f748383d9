package open_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencedlease/lease/memory"
	"github.com/fencedlease/lease/open"
)

// A store that is in memory, and counts its calls of Close.
type store struct {
	*memory.Store
	closed *int
}

func (s store) Close() error {
	*s.closed++
	return nil
}

func TestStore(t *testing.T) {
	var closed int
	var got string
	form := "fake://HOST/" + t.Name()
	open.Register("fake", form, func(_ context.Context, url string) (open.Leases, error) {
		got = url
		if strings.Contains(url, "secret") {
			return nil, open.ErrMalformed
		}
		return store{memory.New(nil), &closed}, nil
	})
	open.Register("other-name", "", func(context.Context, string) (open.Leases, error) { return nil, errors.New("down") })
	if forms := open.Forms(); !slices.Contains(forms, form) || slices.Contains(forms, "") {
		t.Errorf("the forms are %q", forms)
	}
	s, err := open.Store(t.Context(), "fake://host:1/x?y#z")
	if err != nil || got != "fake://host:1/x?y#z" {
		t.Fatalf("%v, with the URL %q", err, got)
	}
	l, err := s.Lease("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := l.Acquire(t.Context()); !ok || err != nil {
		t.Errorf("acquired: %v, %v", ok, err)
	}
	for e, err := range s.List(t.Context(), "") {
		if err != nil || e.Name != "x" {
			t.Errorf("listed: %v, %v", e, err)
		}
	}
	_ = l.Close(t.Context())
	if err := s.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times: %v", closed, err)
	}
	if _, err := open.Store(t.Context(), "other-name://x"); err == nil || err.Error() != "down" {
		t.Errorf("the error of the engine is %v", err)
	}
}

// A wrong URL is a URLError that says what to write or to import, and never shows a password.
func TestWrongURLs(t *testing.T) {
	open.Register("wrong", "wrong://HOST", func(context.Context, string) (open.Leases, error) { return nil, open.ErrMalformed })
	for url, want := range map[string]string{
		"":                        "store URL: the URL is empty; use one of ",
		"fil:/x":                  "store URL fil: unknown store; use one of ",
		"leases.db":               "for a file, write file:leases.db",
		"zk://host:1":             "store URL zk: unknown store; use one of ",
		"u:secret@host:1":         "store URL: unknown store",
		"redis://u:secret@host:1": "import github.com/fencedlease/lease/redislease",
		"postgresql://u@h/x":      "import github.com/fencedlease/lease/pglease",
		"file:x":                  "import github.com/fencedlease/lease/sqlitelease",
		"wrong://u:secret@host":   "malformed; use wrong://HOST",
		"wrong:":                  "incomplete; use wrong://HOST",
		"wrong://":                "incomplete; use wrong://HOST",
	} {
		_, err := open.Store(t.Context(), url)
		var wrong *open.URLError
		if !errors.As(err, &wrong) || errors.Is(err, open.ErrNotImported) != strings.HasPrefix(want, "import") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want a URLError with %q", url, err, want)
		}
	}
}

func TestRegisterPanics(t *testing.T) {
	f := func(context.Context, string) (open.Leases, error) { return nil, nil }
	open.Register("twice", "twice://", f)
	for what, register := range map[string]func(){
		"twice":       func() { open.Register("twice", "", f) },
		"no scheme":   func() { open.Register("", "", f) },
		"a colon":     func() { open.Register("a:b", "", f) },
		"no function": func() { open.Register("none", "", nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			register()
		}()
	}
}

func TestHosts(t *testing.T) {
	for url, want := range map[string]string{
		"etcd://a:1,b:2/p/q":                   "a:1 b:2 p/q",
		"nats://h":                             "h ",
		"etcd://u:secret@host:2379":            `host "host:2379" is not HOST:PORT`,
		"etcd://a:1,b c:2":                     `host "b c:2" is not HOST:PORT`,
		"nats://host:4222/leases?token=secret": "parameters are not supported",
	} {
		hosts, path, err := open.Hosts(url)
		got := strings.Join(append(hosts, path), " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	for url, want := range map[string]string{
		"file:a b%23c%25d.db":    "a b#c%d.db",
		"file:///var/x.db":       "/var/x.db",
		"file:./x.db":            "./x.db",
		"redis://x":              "not file:PATH",
		"file:":                  "not of a folder",
		"file://leases.db":       "use file:PATH",
		"file:leases.db?mode=ro": "parameters are not supported",
		"file:?mode=memory":      "parameters are not supported",
		"file::memory:":          "in memory",
		"file:%3Amemory:":        "in memory",
		"file:///":               "not of a folder",
		"file:leases/":           "not of a folder",
		"file:%zz":               "malformed",
	} {
		path, err := open.Path(url)
		if err != nil {
			path = err.Error()
		}
		if !strings.Contains(path, want) {
			t.Errorf("%s: %q, want %q", url, path, want)
		}
	}
}
