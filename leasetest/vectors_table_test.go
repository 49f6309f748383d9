package leasetest

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fencedlease/lease"
)

// The cells of the table are those of the published one, each once: 19 rows by 5 states, of
// which the last row, "duration expires", is a scenario a state here. In both formats they
// have the same outcome, state, ID and rise of the epoch. SPEC M1.
func TestTheTableIsThePublishedOne(t *testing.T) {
	here, there := cellsOfVectors(t), cellsOfTestdata(t)
	if len(here) != 95 || len(there) != 95 {
		t.Errorf("%d cells here, and %d in testdata; want 95", len(here), len(there))
	}
	for _, key := range slices.Sorted(maps.Keys(there)) {
		want := there[key]
		got, ok := here[key]
		if !ok {
			t.Errorf("the cell %s is missing here", key)
			continue
		}
		if got.id == nil {
			got.id = want.id // it is not named here
		}
		if got.grants == nil {
			got.grants = want.grants
		}
		if got.code != want.code || got.state != want.state || *got.id != *want.id || *got.grants != *want.grants {
			t.Errorf("%s:\n%s here\n%s in testdata", key, got.text(), want.text())
		}
	}
}

func (o outcome) text() string {
	s := fmt.Sprint(codeText(o.code, nil), " ", o.state)
	if o.id != nil {
		s += fmt.Sprint(" id=", o.id)
	}
	if o.grants != nil {
		s += fmt.Sprint(" epoch=+", *o.grants)
	}
	return s
}

// passes is the row in which nothing is asked, and the time goes by.
const passes = "duration expires"

// cellsOfVectors reads table.txt, by state and request.
func cellsOfVectors(t *testing.T) map[string]outcome {
	cells := map[string]outcome{}
	for _, v := range mustVectors(t) {
		if !strings.HasPrefix(v.file, "table.txt") {
			continue
		}
		key := v.given + ": " + cellKey(v.steps[0].req)
		if state, ok := strings.CutPrefix(v.name, passes+" on "); ok {
			key = state + ": " + passes
			if state != v.given || len(v.steps) != 1 || v.steps[0].req != (lease.Request{Action: lease.ActionRead}) {
				t.Errorf("%s: %s: it must look, and do no more", v.file, v.name)
			}
		}
		if _, ok := cells[key]; ok {
			t.Errorf("%s: the cell %s is there twice", v.file, key)
		}
		cells[key] = v.steps[0].want
	}
	return cells
}

// cellsOfTestdata reads tables.txt, by state and request.
func cellsOfTestdata(t *testing.T) map[string]outcome {
	file, err := os.Open("../testdata/tables.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	named := strings.NewReplacer("=X", "=C", "=-", "=none") // an ID that the service makes up, and none
	cells, row := map[string]outcome{}, ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := named.Replace(lines.Text())
		if text, ok := strings.CutPrefix(line, "request "); ok {
			if row = passes; !strings.HasPrefix(text, "pass ") {
				s, err := parseStep("0s " + text + " => ok available")
				if err != nil {
					t.Fatal(err)
				}
				row = cellKey(s.req)
			}
			continue
		}
		columns := strings.Split(line, "|")
		if len(columns) != 5 {
			continue
		}
		given := strings.TrimSpace(columns[0])
		o, err := publishedOutcome(given, strings.Fields(columns[2]))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		cells[given+": "+row] = o
	}
	return cells
}

// publishedOutcome reads an outcome in the format of testdata: what is not named is as it was.
func publishedOutcome(given string, words []string) (o outcome, err error) {
	id, none := letters["A"], uint64(0)
	if given == "available" {
		id = lease.ID{}
	}
	o.id, o.grants = &id, &none
	if words[0] != "ok" {
		if err := o.code.UnmarshalText([]byte(words[0])); err != nil {
			return o, err
		}
		return o, o.state.UnmarshalText([]byte(given))
	}
	for _, field := range words[2:] {
		if strings.HasPrefix(field, "id=") || strings.HasPrefix(field, "epoch=") {
			if err := o.parse(field); err != nil {
				return o, err
			}
		}
	}
	return o, o.state.UnmarshalText([]byte(words[1]))
}

// cellKey tells the rows of the table apart.
func cellKey(req lease.Request) string {
	key := requestText(lease.Request{Action: req.Action, ID: req.ID, Proposed: req.Proposed})
	if p, ok := req.Period.Get(); ok && p > 0 {
		return key + " period>0"
	} else if ok {
		return key + " period=0"
	}
	return key
}
