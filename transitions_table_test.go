package lease_test

import (
	"strings"
	"testing"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// The vectors have each cell of the two outcome tables, in the published words. leasetest.TestStep tries
// them. SPEC M1, M2, M5, M19.
func TestTables(t *testing.T) {
	tables := rows(t, "table.txt")
	if len(tables) != 19 {
		t.Errorf("%d rows, want the 19 of the document", len(tables))
	}
	order := []lease.State{lease.Available, lease.Leased, lease.Breaking, lease.Broken, lease.Expired}
	differs := 0
	for _, row := range tables {
		if len(row.Cells) != len(order) {
			t.Fatalf("%s: %d cells, want %d", row.Name, len(row.Cells), len(order))
		}
		for i, c := range row.Cells {
			if c.Record.State != order[i] {
				t.Errorf("%s: column %d is %v, want %v", row.Name, i, c.Record.State, order[i])
			}
			checkWords(t, row, c)
			if c.Service != "" {
				differs++
			}
		}
	}
	if differs != 3 {
		t.Errorf("%d cells in which the service differs, want 3", differs)
	}
}

// The vectors have every bullet of Azure's list of changes in both dialects, word for word: "The following
// list specifies changes to Lease Blob behavior introduced in version 2012-02-12". SPEC M17.
func TestChangeList(t *testing.T) {
	bullets := []string{
		"A call to Lease Blob to acquire a lease now must include a lease duration header. Trying to acquire a lease without specifying a lease duration will fail with 400 Bad Request – Missing required header.",
		"You can no longer renew a lease after releasing it. Trying to do so will fail with 409 Conflict – The lease ID specified did not match the lease ID for the blob. Applications that called release and then called renew must now save the ETag from the release call and then call acquire with an If-Match conditional header to only acquire the lease when the blob is unchanged.",
		"You can no longer break a lease after releasing it. Attempting to do this will now fail with 409 Conflict – There is currently no lease on the blob.",
		"You can now break a breaking or broken lease, making break operations idempotent. In previous versions, this failed with 409 Conflict – The lease has already been broken and cannot be broken again. This change allows you to shorten the duration of a break. If you break a lease that is in breaking state and include a shorter duration than the remaining break period, your shorter duration is used.",
	}
	changes := rows(t, "changes.txt")
	for _, quote := range bullets {
		before, since := 0, 0
		for _, row := range changes {
			if row.Quote != quote {
				continue
			}
			switch {
			case strings.HasPrefix(row.Name, "Before: ") && row.Request.Version == lease.Version20110818:
				before++
			case strings.HasPrefix(row.Name, "Since: ") && row.Request.Version == lease.Version20120212:
				since++
			default:
				t.Errorf("row %q has version %v", row.Name, row.Request.Version)
			}
		}
		if before == 0 || since == 0 {
			t.Errorf("%d rows before and %d since: %s", before, since, quote)
		}
	}
}

// checkWords compares the published words of a cell with the outcome in the test data, so that the test
// data stays equal to the document.
func checkWords(t *testing.T, row vectors.Row, c vectors.Cell) {
	t.Helper()
	words, refused := strings.CutPrefix(c.Published, "Fails (")
	if refused {
		if c.Want.Code == 0 || words != c.Status+")" {
			t.Errorf("%s, %v: %q is published, the outcome is %v, status %s", row.Name, c.Record.State, c.Published, c.Want.Code, c.Status)
		}
		return
	}
	next, code := c.Want.Of(c.Record, noon), c.Want.Code
	state, _, _ := strings.Cut(c.Published, ",")
	state, id, named := strings.Cut(strings.TrimSuffix(strings.ReplaceAll(state, " ", ""), ")"), "(")
	if code != 0 || strings.ToLower(state) != next.State.String() || named && ids[id] != next.ID {
		t.Errorf("%s, %v: %q is published, the outcome is %v", row.Name, c.Record.State, c.Published, c.Want.Code)
	}
}

// isExactly reports whether err is the Code itself, or nil if the Code is 0.
func isExactly(err error, code lease.Code) bool {
	if err == nil {
		return code == 0
	}
	return err == error(code)
}
