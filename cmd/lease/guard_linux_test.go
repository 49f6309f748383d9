package main_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fencedlease/lease/cmd/lease/internal/servers"
	"github.com/fencedlease/lease/fencing"
)

// Each way that docs/command.md shows to guard what a command writes lets two holders write, one after the other. It
// refuses the first of them afterwards, and a command without a token, and then writes nothing and fails.
func TestGuards(t *testing.T) {
	database, stop, err := servers.Postgres(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	var total atomic.Int64
	accounts, err := fencing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n int64
		_, _ = fmt.Fscan(r.Body, &n)
		total.Add(n)
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(accounts)
	t.Cleanup(server.Close)
	t.Setenv("DATABASE_URL", database)
	t.Setenv("REDIS_URL", url)
	t.Setenv("ACCOUNTS_URL", server.URL)

	sh := func(command string, env ...string) (string, error) {
		cmd := exec.Command("sh", "-c", command)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	t.Setenv("DATABASE", filepath.Join(t.TempDir(), "accounts.db"))
	for name, c := range map[string]struct{ prepare, sql, total, stale string }{
		"psql.sh":   {sql: `psql -qAt "$DATABASE_URL" -c `},
		"sqlite.sh": {prepare: `sqlite3 "$DATABASE" <examples/guard/sqlite.sql`, sql: `sqlite3 "$DATABASE" `, stale: "stale token"},
		"redis.sh":  {prepare: `redis-cli -u "$REDIS_URL" -x FUNCTION LOAD REPLACE <../../redislease/mark.lua`, total: `redis-cli -u "$REDIS_URL" GET "{accounts}:total"`},
		"curl.sh":   {},
	} {
		t.Run(name, func(t *testing.T) {
			if c.sql != "" {
				c.prepare += "\n" + c.sql + `"create table accounts as select 0 as total"`
				c.total = c.sql + `"select total from accounts"`
			}
			if out, err := sh(c.prepare); err != nil {
				t.Fatal(out, err)
			}
			is := func(want string) {
				t.Helper()
				out, err := sh(c.total)
				if c.total == "" {
					out = fmt.Sprint(total.Load())
				}
				if out != want || err != nil {
					t.Errorf("the total is %s, %v, want %s", out, err, want)
				}
			}
			script := filepath.Join("examples", "guard", name)
			var tokens []string
			for _, want := range []string{"5", "10"} {
				file := filepath.Join(t.TempDir(), "token")
				if out, stderr, code := run(t, url, "run", "guard/"+name, "--", "sh", "-ec", `echo "$LEASE_TOKEN" >"$0"; . "$1"`, file, "./"+script); code != 0 {
					t.Fatal(out, stderr, code)
				}
				token, _ := os.ReadFile(file)
				tokens = append(tokens, strings.TrimSpace(string(token)))
				is(want)
			}
			for why, token := range map[string]string{cmp.Or(c.stale, tokens[1]): tokens[0], "oken": ""} { // what the error names
				out, err := sh("sh ./"+script, "LEASE_TOKEN="+token)
				if err == nil || !strings.Contains(out, why) {
					t.Errorf("with the token %q: %v, %s, want an error that says %s", token, err, out, why)
				}
				is("10")
			}
			if c.sql != "" { // The mark is committed with the write or not at all.
				out, err := sh(c.sql+`"drop table accounts"; sh ./`+script, "LEASE_TOKEN=09223372036854775807")
				mark, _ := sh(c.sql + `"select token from lease_mark"`)
				if err == nil || mark != tokens[1] {
					t.Errorf("a write that fails: %v, %s, the mark is %s, want %s", err, out, mark, tokens[1])
				}
			}
		})
	}
}
