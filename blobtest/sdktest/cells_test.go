package sdktest

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// A cell is a cell of one of the two tables of the document: an action in a state, and its outcome.
type cell struct {
	action, state           string
	status, code, afterward string
}

// readCells reads the tables of the double's own tests.
func readCells(t *testing.T) (cells []cell) {
	t.Helper()
	f, err := os.Open("../testdata/cells.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var states []string
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		switch words := strings.Fields(line); {
		case line == "" || line[0] == '#':
		case words[0] == "uses" || words[0] == "operations":
			states = words[1:]
		default:
			for i, outcome := range strings.Split(line[16:], "|") {
				c := cell{action: strings.TrimSpace(line[:16]), state: states[i]}
				c.status, c.code, _ = strings.Cut(strings.TrimSpace(outcome), " ")
				c.status, c.afterward, _ = strings.Cut(c.status, ":")
				c.status, _, _ = strings.Cut(c.status, "/")
				if c.afterward == "" {
					c.afterward = c.state
				}
				cells = append(cells, c)
			}
		}
	}
	if len(cells) != 100 {
		t.Fatalf("%d cells, want 100", len(cells))
	}
	return cells
}
