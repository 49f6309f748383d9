package sdktest

import (
	"encoding/json"
	"os"
	"testing"
)

// A cell is a cell of one of the two tables of the document: an action in a state, and its outcome. The
// tests of the double describe the fields, and write the cells.
type cell struct {
	Action, State, Code, After string
	Status                     int
}

// readCells reads the cells from the file that the double's own tests write.
func readCells(t *testing.T) (cells []cell) {
	t.Helper()
	data, err := os.ReadFile("../testdata/cells.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &cells); err != nil {
		t.Fatal(err)
	}
	if len(cells) != 100 {
		t.Fatalf("%d cells, want 100", len(cells))
	}
	return cells
}
