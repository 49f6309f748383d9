package mysqllease_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/leasetest/enginetest"
	"github.com/fencedlease/lease/mysqllease"
)

// SPEC G1, G3, G4, G5.
func TestMark(t *testing.T) {
	t.Parallel()
	db := shared.db(t, shared.database(t))
	enginetest.TestMark(t, func(name string, f func(fencing.Mark) error) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := f(mysqllease.Mark(tx, name)); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// A shell advances the same marks as Go, and breaks the same leases. A client without LANG, as in cron, declares latin1
// and sends the name in UTF-8. A name in another encoding is refused, and so is what is no token.
func TestMarkInAShell(t *testing.T) {
	t.Parallel()
	database := shared.database(t)
	do(t, shared.store(t, database, nil).Authority(), "Käse", acquire(idA, time.Hour), 0)
	const nine, ten = "'00000000000000000009'", "'00000000000000000010'"
	for _, charset := range []string{"latin1", "utf8mb4", "gbk"} {
		for statement, works := range map[string]bool{"lease_advance_mark('Käse', " + nine + ")": true, "lease_advance_mark(' ', " + nine + ")": true,
			"lease_break('Käse', 60)": true, "lease_advance_mark('K\xe4se', " + nine + ")": false} {
			if err := shared.Client(database, "call "+statement, "--default-character-set="+charset); (err == nil) != works {
				t.Errorf("%s: %q: %v", charset, statement, err)
			}
		}
	}
	for _, c := range []struct {
		resource, token string
		works           bool
	}{
		{"a", nine, true}, {"a", nine, true}, {"a", ten, true}, {"a", nine, false}, {"A", nine, true}, {"b", "''", false}, {"b", "null", false}, {"", ten, false},
		{"b", "'00000000000000000000'", false}, {"b", "'09223372036854775808'", false}, {"b", "'00000000000000000001\n'", false}, {"b", "7", false},
	} {
		if _, err := shared.db(t, database).Exec(fmt.Sprintf("call lease_advance_mark('%s', %s)", c.resource, c.token)); (err == nil) != c.works {
			t.Errorf("%q %s: %v", c.resource, c.token, err)
		}
	}
	shared.exec(t, database, "create table accounts as select 0 as total")
	for _, epoch := range []uint64{9, 10, 9} { // the last one is stale
		cmd := exec.Command("sh", "guard.sh") // of README.md
		cmd.Env = append(os.Environ(), "MYSQL_HOST=127.0.0.1", "MYSQL_TCP_PORT="+shared.Addr()[len("127.0.0.1:"):], "MYSQL_USER=root", "MYSQL_DATABASE="+database, "LEASE_TOKEN="+string(lease.TokenOf(epoch)))
		_ = cmd.Run()
	}
	tx, err := shared.db(t, database).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	var total, marks int
	if err := tx.QueryRow("select total, (select count(*) from lease_mark) from accounts").Scan(&total, &marks); err != nil || total != 10 || marks != 5 {
		t.Errorf("the total is %d, want 10, and there are %d marks, want 5: %v", total, marks, err)
	}
	for _, name := range []string{"Käse", " ", "a", "accounts"} {
		if err := fencing.Advance(t.Context(), mysqllease.Mark(tx, name), lease.TokenOf(8)); !errors.Is(err, fencing.ErrStale) {
			t.Errorf("Go does not see the mark %q of the shell: %v", name, err)
		}
	}
}
