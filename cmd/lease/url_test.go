package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencedlease/lease/open"
)

// Each engine that the program imports has registered its URLs. A wrong URL is a URLError that says what is wrong, and
// never shows a password.
func TestWrongURLs(t *testing.T) {
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "")
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	for url, want := range map[string]string{
		"redis:":                               "incomplete; use redis://",
		"etcd://":                              "incomplete; use etcd://",
		"kube://":                              "incomplete; use kube://NAMESPACE",
		"postgres://u:secret@host:none/x":      "malformed; use postgres://",
		"redis://u:secret@host:6379/many":      "malformed; use redis://",
		"rediss://u:secret@host:6379/many":     "malformed; use rediss://",
		"etcd://u:secret@host:2379":            `host "host:2379" is not HOST:PORT`,
		"etcd://a:1,b c:2":                     `host "b c:2" is not HOST:PORT`,
		"nats://host:4222/leases?token=secret": "parameters are not supported",
		"nats://u:secret@host:4222/leases":     `host "host:4222" is not HOST:PORT`,
		"azblob://container":                   "set AZURE_STORAGE_CONNECTION_STRING",
	} {
		_, err := open.Store(t.Context(), url)
		var wrong *open.URLError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want a URLError with %q", url, err, want)
		}
	}
}

// A store that is opened without a request needs no server. Both names of PostgreSQL's scheme count, and
// the credentials come from the environment.
func TestOpen(t *testing.T) {
	t.Setenv("PGPASSWORD", "secret")
	t.Setenv("REDISCLI_AUTH", "secret")
	t.Setenv("ETCDCTL_USER", "")
	t.Setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
	for _, url := range []string{"postgres://u@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x", "redis://127.0.0.1:1/2", "rediss://127.0.0.1:1", "etcd://127.0.0.1:1,127.0.0.1:2/prefix", "azblob://account/container"} {
		s, err := open.Store(t.Context(), url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if _, err := s.Lease("x", nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		_ = s.Close()
	}
}

// The forms of a file's URL lead to the same file, and a path may have any characters.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	slashes := filepath.ToSlash(dir)
	if !strings.HasPrefix(slashes, "/") {
		slashes = "/" + slashes
	}
	path := "a b#c%d.db"
	for _, url := range []string{"file:a b%23c%25d.db", "file://" + slashes + "/a%20b%23c%25d.db", "file:./a b%23c%25d.db"} {
		s, err := open.Store(t.Context(), url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		defer s.Close()
		l, err := s.Lease("x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := l.Acquire(t.Context()); err != nil || ok != (url == "file:a b%23c%25d.db") {
			t.Errorf("%s: %v, %v", url, ok, err)
		}
		defer l.Close(t.Context())
	}
	if files, err := filepath.Glob("*.db"); err != nil || len(files) != 1 || files[0] != path {
		t.Errorf("%q, %v", files, err)
	}
	if _, err := open.Store(t.Context(), "file:missing/leases.db"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
