package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/vectors"
)

// TestTables checks each cell of the two outcome tables, just before, at and just after every
// Until. SPEC M1, M2, M5, M19.
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
	checkRows(t, tables, 95)
}

// TestEdges checks the cases that the Lease Blob document describes in prose or leaves open.
// SPEC M3, M4, M6, M7, M8, M9, M10, M11, M12, M13, M14, M18.
func TestEdges(t *testing.T) { checkRows(t, rows(t, "edges.txt"), 164) }

// TestChangeList checks every bullet of Azure's list of changes in both dialects, word for word:
// "The following list specifies changes to Lease Blob behavior introduced in version 2012-02-12".
// SPEC M17.
func TestChangeList(t *testing.T) {
	bullets := []string{
		"A call to Lease Blob to acquire a lease now must include a lease duration header. Trying to acquire a lease without specifying a lease duration will fail with 400 Bad Request – Missing required header.",
		"You can no longer renew a lease after releasing it. Trying to do so will fail with 409 Conflict – The lease ID specified did not match the lease ID for the blob. Applications that called release and then called renew must now save the ETag from the release call and then call acquire with an If-Match conditional header to only acquire the lease when the blob is unchanged.",
		"You can no longer break a lease after releasing it. Attempting to do this will now fail with 409 Conflict – There is currently no lease on the blob.",
		"You can now break a breaking or broken lease, making break operations idempotent. In previous versions, this failed with 409 Conflict – The lease has already been broken and cannot be broken again. This change allows you to shorten the duration of a break. If you break a lease that is in breaking state and include a shorter duration than the remaining break period, your shorter duration is used.",
	}
	changes := rows(t, "changes.txt")
	for _, quote := range bullets {
		t.Run(quote, func(t *testing.T) {
			var before, since []vectors.Row
			for _, row := range changes {
				if row.Quote != quote {
					continue
				}
				switch {
				case strings.HasPrefix(row.Name, "Before: ") && row.Request.Version == lease.Version20110818:
					before = append(before, row)
				case strings.HasPrefix(row.Name, "Since: ") && row.Request.Version == lease.Version20120212:
					since = append(since, row)
				default:
					t.Errorf("row %q has version %v", row.Name, row.Request.Version)
				}
			}
			checkRows(t, before, 0)
			checkRows(t, since, 0)
			// All versions of one dialect have the same outcomes.
			checkRows(t, in(before, lease.Version20090919), 0)
			checkRows(t, in(since, 0), 0)
			checkRows(t, in(since, 2025_11_05), 0)
		})
	}
	checkRows(t, changes, 33)
}

func in(rows []vectors.Row, v lease.Version) []vectors.Row {
	var all []vectors.Row
	for _, row := range rows {
		row.Request.Version = v
		all = append(all, row)
	}
	return all
}

// checkWords compares the published words of a cell with the outcome in the test data, so that the
// test data stays equal to the document.
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

// checkRows checks every cell of the rows. If number is not 0, checkRows also checks the number of
// cells.
func checkRows(t *testing.T, all []vectors.Row, number int) {
	t.Helper()
	cells := 0
	for _, row := range all {
		for _, c := range row.Cells {
			cells++
			t.Run(row.Name+"/"+c.Record.State.String(), func(t *testing.T) {
				checkCell(t, row, c, c.Record, row.Now.Add(row.Pass))
				until := c.Record.Until
				if until.IsZero() {
					return
				}
				checkCell(t, row, c, c.Record, until.Add(-1))
				// From Until on, the cell of the next state applies.
				next, ok := row.In(after[c.Record.State])
				if !ok {
					return
				}
				checkCell(t, row, next, c.Record, until)
				checkCell(t, row, next, c.Record, until.Add(1))
			})
		}
	}
	if number != 0 && cells != number {
		t.Errorf("%d cells, want %d", cells, number)
	}
}

// The map after has the state that follows each state at the time Until.
var after = map[lease.State]lease.State{lease.Leased: lease.Expired, lease.Breaking: lease.Broken}

// checkCell calls Step with the record r at the time now, and compares the result with the cell c.
func checkCell(t *testing.T, row vectors.Row, c vectors.Cell, r lease.Record, now time.Time) {
	t.Helper()
	if err := r.Validate(); err != nil {
		t.Fatalf("the record of the cell: %v", err)
	}
	seen := r
	over := !r.Until.IsZero() && !now.Before(r.Until)
	if over {
		seen.State, seen.Until = after[r.State], time.Time{}
	}
	want, code := c.Want.Of(seen, now), c.Want.Code
	if row.Pass != 0 {
		if !over {
			want = seen
		}
		if got := r.At(now); got != want {
			t.Errorf("at %v: %v\n got %+v\nwant %+v", now, row.Name, got, want)
		}
		return
	}
	got, err := lease.Step(r, row.Request, now)
	if !isExactly(err, code) || got != want {
		t.Errorf("at Until%+v: %+v\n got %+v, %v\nwant %+v, %v", now.Sub(r.Until), row.Request, got, err, want, code)
	}
	checkStep(t, r, row.Request, now, got, err)
}

// isExactly reports whether err is the Code itself, or nil if the Code is 0.
func isExactly(err error, code lease.Code) bool {
	if err == nil {
		return code == 0
	}
	return err == error(code)
}

// checkStep checks the properties that every step from a valid record must have.
func checkStep(t interface {
	Helper()
	Errorf(string, ...any)
}, r lease.Record, req lease.Request, now time.Time, next lease.Record, err error) {
	t.Helper()
	bad := func(what string) {
		t.Helper()
		t.Errorf("%s:\n%+v\n%+v at %v\n%+v, %v", what, r, req, now, next, err)
	}
	seen := r.At(now)
	if e := next.Validate(); e != nil {
		bad(e.Error())
	}
	if next != next.At(now) {
		bad("what is returned is over already")
	}
	if err != nil {
		if next != seen {
			bad("a refusal changes the record")
		}
		if _, ok := err.(lease.Code); !ok {
			bad("the error is not a Code")
		}
	}
	rise := uint64(0)
	if err == nil && (req.Action == lease.ActionAcquire || req.Action == lease.ActionChange && next.ID != seen.ID) {
		rise = 1
	}
	if next.Epoch-r.Epoch != rise {
		bad("the epoch is wrong")
	}
	if req.Action == lease.ActionRead && next != seen {
		bad("a read changes the record")
	}
	if req.Action == lease.ActionBreak && next.Remaining(now) > seen.Remaining(now) {
		bad("a break lengthens")
	}
	if seen.State.Locked() && next.ID != seen.ID && req.Action != lease.ActionChange {
		bad("the ID in force was replaced")
	}
	if next.State.Locked() && !next.Until.IsZero() {
		if before := next.At(next.Until.Add(-1)); before != next {
			bad("it is over before Until")
		}
		if after := next.At(next.Until); after.State.Locked() {
			bad("it is not over at Until")
		}
	}
}
