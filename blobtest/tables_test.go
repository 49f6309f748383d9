package blobtest

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
)

// SPEC M1, M19: every refusal of the outcome tables has the status of the service. With the option
// PublishedTable it has the status of the document.
//
// SPEC W1.
func TestStatusesOfTheTables(t *testing.T) {
	f, err := os.Open("../leasetest/vectors/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	withPublished := append(slices.Clone(publishedOutcomes), outcomes...)
	var action lease.Action
	refusals, differing := 0, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "request "); ok {
			word, _, _ := strings.Cut(rest, " ")
			if err := action.UnmarshalText([]byte(word)); err != nil && word != "pass" {
				t.Fatal(err)
			}
			continue
		}
		cell := strings.Split(s.Text(), "|")
		if len(cell) != 5 || strings.HasPrefix(s.Text(), "#") {
			continue
		}
		for i := range cell {
			cell[i] = strings.TrimSpace(cell[i])
		}
		if strings.HasPrefix(cell[2], "ok ") {
			continue
		}
		var state lease.State
		var code lease.Code
		if err := state.UnmarshalText([]byte(cell[0])); err != nil {
			t.Fatal(err)
		}
		if err := code.UnmarshalText([]byte(cell[2])); err != nil {
			t.Fatal(err)
		}
		service := cell[4]
		if service == "" {
			service = cell[3]
		} else {
			differing++
		}
		refusals++
		if got := outcomeOf(outcomes, action, state, code).status; strconv.Itoa(got) != service {
			t.Errorf("%v on %v, %v: %d, the service answers %s", action, state, code, got, service)
		}
		if got := outcomeOf(withPublished, action, state, code).status; strconv.Itoa(got) != cell[3] {
			t.Errorf("%v on %v, %v: %d, published is %s", action, state, code, got, cell[3])
		}
	}
	if refusals != 52 || differing != 3 {
		t.Errorf("%d refusals, of which %d differ from the document", refusals, differing)
	}
}
