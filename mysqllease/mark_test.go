package mysqllease_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/mysqllease"
)

// SPEC G1, G3, G4, G5. While a transaction has locked the mark, another one waits, whatever its token.
func TestMark(t *testing.T) {
	t.Parallel()
	db, rollback := shared.db(t, shared.database(t)), errors.New("roll back")
	advance := func(ctx context.Context, name string, epoch uint64, then func() error) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fencing.Advance(ctx, mysqllease.Mark(tx, name), lease.TokenOf(epoch)); err != nil {
			return err
		}
		if err := then(); err != nil {
			return err
		}
		return tx.Commit()
	}
	for _, c := range []struct {
		name       string
		epoch      uint64
		then, want error
	}{
		{"a", 9, nil, nil}, {"a", 9, nil, nil}, {"a", 10, nil, nil}, {"a", 9, nil, fencing.ErrStale}, {"A", 1, nil, nil}, {"a ", 1, nil, nil},
		{"a", 12, rollback, rollback}, {"a", 11, nil, nil}, {"a", 10, nil, fencing.ErrStale}, {"a\x00", 1, nil, lease.ErrName}, {"b", 0, nil, lease.ErrToken},
	} {
		if err := advance(t.Context(), c.name, c.epoch, func() error { return c.then }); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%q %d: %v, want %v", c.name, c.epoch, err, c.want)
		}
	}
	for range 2 { // the second time, the mark exists
		if err := advance(t.Context(), "c", 5, func() error {
			for _, epoch := range []uint64{4, 5, 6} {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				if err := advance(ctx, "c", epoch, func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("token %d beside 5: %v", epoch, err)
				}
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// A client without LANG, as in cron, declares latin1 and sends the name in UTF-8. It advances the same mark as Go, and breaks
// the same lease. A name in another encoding is refused.
func TestNamesOfAShellWithoutLANG(t *testing.T) {
	t.Parallel()
	database := shared.database(t)
	do(t, shared.store(t, database, nil).Authority(), "Käse", acquire(idA, time.Hour), 0)
	tell := func(charset, statement string) error {
		cmd := exec.Command("mysql", "--default-character-set="+charset, "--host=127.0.0.1", "--port="+shared.Addr()[len("127.0.0.1:"):], "--user=root", database)
		cmd.Stdin = strings.NewReader(statement)
		return cmd.Run()
	}
	for _, charset := range []string{"latin1", "utf8mb4", "gbk"} {
		for statement, works := range map[string]bool{
			"call lease_advance_mark('Käse', '00000000000000000009')":    true,
			"call lease_advance_mark('K\xe4se', '00000000000000000009')": false,
			"call lease_advance_mark(' ', '00000000000000000009')":       true,
			"call lease_break('Käse', 60)":                               true,
		} {
			if err := tell(charset, statement); (err == nil) != works {
				t.Errorf("%s: %q: %v", charset, statement, err)
			}
		}
	}
	tx, err := shared.db(t, database).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for _, name := range []string{"Käse", " "} {
		if err := fencing.Advance(t.Context(), mysqllease.Mark(tx, name), lease.TokenOf(8)); !errors.Is(err, fencing.ErrStale) {
			t.Errorf("Go does not see the mark %q of the shell: %v", name, err)
		}
	}
	var marks int
	if err := tx.QueryRow("select count(*) from lease_mark").Scan(&marks); err != nil || marks != 2 {
		t.Errorf("%d marks, %v, want 2", marks, err)
	}
}

// A shell advances the same mark in the transaction of its write, which is rolled back if the token is stale or missing.
func TestMarkInAShell(t *testing.T) {
	t.Parallel()
	database := shared.database(t)
	shared.exec(t, database, "create table accounts as select 0 as total")
	script, err := os.ReadFile("guard.sh") // of README.md
	if err != nil {
		t.Fatal(err)
	}
	writes := func(resource, token string) error {
		cmd := exec.Command("sh", "-c", strings.NewReplacer("'accounts'", resource, "'$LEASE_TOKEN'", token).Replace(string(script)))
		cmd.Env = append(os.Environ(), "MYSQL_HOST=127.0.0.1", "MYSQL_TCP_PORT="+shared.Addr()[len("127.0.0.1:"):], "MYSQL_USER=root", "LEASE_TOKEN=00000000000000000009", "MYSQL_DATABASE="+database)
		return cmd.Run()
	}
	for _, c := range []struct {
		resource, token string
		writes          bool
	}{
		{"'a'", "'$LEASE_TOKEN'", true}, {"'a'", "'00000000000000000009'", true}, {"'a'", "'00000000000000000010'", true},
		{"'a'", "'00000000000000000009'", false}, {"'A'", "'00000000000000000001'", true}, {"'b'", "''", false}, {"'b'", "null", false}, {"''", "'00000000000000000011'", false},
		{"'b'", "'00000000000000000000'", false}, {"'b'", "'09223372036854775808'", false}, {"'b'", "'00000000000000000001\n'", false}, {"'b'", "7", false},
	} {
		if err := writes(c.resource, c.token); (err == nil) != c.writes {
			t.Errorf("%s %q: %v", c.resource, c.token, err)
		}
	}
	tx, err := shared.db(t, database).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRow("select total from accounts").Scan(&n); err != nil || n != 20 {
		t.Errorf("the total is %d, %v, want 20", n, err)
	}
	if err := fencing.Advance(t.Context(), mysqllease.Mark(tx, "a"), lease.TokenOf(9)); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("Go does not see the mark of the shell: %v", err)
	}
}
