package cli

import (
	"os"
	"strings"
	"time"

	"github.com/fencedlease/lease/internal/timeline"
)

// A picture is the timeline that lease watch -o draws: of one lease with a lane for each holder, or of
// the leases under a prefix with a lane for each.
type picture struct {
	file    string
	group   bool
	drawing timeline.Drawing
	seen    map[string]timeline.Lease
}

func newPicture(file, name string) *picture {
	group := strings.HasSuffix(name, "/")
	return &picture{file: file, group: group, drawing: timeline.Drawing{Title: "leases " + name, Sorted: group}, seen: map[string]timeline.Lease{}}
}

// draw adds rows that have changed, and writes the file, so that it is whole when the program is ended.
func (p *picture) draw(changed []row) error {
	if p == nil {
		return nil
	}
	now := time.Now()
	for _, w := range changed {
		l := timeline.Lease{Name: w.Name, State: w.State, Owner: w.Owner, Token: w.Token, Left: w.left, Error: w.Error}
		p.drawing.Change(now, p.seen[w.Name], l, !p.group)
		p.seen[w.Name] = l
	}
	temporary := p.file + ".new"
	err := os.WriteFile(temporary, p.drawing.SVG(now), 0o644)
	if err == nil {
		err = os.Rename(temporary, p.file)
	}
	if err != nil {
		return fail(1, "-o: %v", err)
	}
	return nil
}
