package blobtest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasetest"
)

// SPEC M1, M19: every refusal of the outcome tables has the status of the service. With the option
// PublishedTable, every refusal has the status of the document.
//
// SPEC W1.
func TestStatusesOfTheTables(t *testing.T) {
	all, err := vectors.Parse(leasetest.Vectors())
	if err != nil {
		t.Fatal(err)
	}
	withPublished := append(slices.Clone(publishedOutcomes), outcomes...)
	refusals, differing := 0, 0
	for _, row := range all.Rows {
		if row.File != "table.txt" {
			continue
		}
		for _, c := range row.Cells {
			if c.Want.Code == 0 {
				continue
			}
			refusals++
			service := c.Service
			if service == "" {
				service = c.Status
			} else {
				differing++
			}
			action, state, code := row.Request.Action, c.Record.State, c.Want.Code
			if got := outcomeOf(outcomes, action, state, code).status; strconv.Itoa(got) != service {
				t.Errorf("%s: %v on %v, %v: %d, the service answers %s", c.Where, action, state, code, got, service)
			}
			if got := outcomeOf(withPublished, action, state, code).status; strconv.Itoa(got) != c.Status {
				t.Errorf("%s: %v on %v, %v: %d, published is %s", c.Where, action, state, code, got, c.Status)
			}
		}
	}
	if refusals != 52 || differing != 3 {
		t.Errorf("%d refusals, of which %d differ from the document", refusals, differing)
	}
}
