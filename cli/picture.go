package cli

import (
	"os"
	"strings"
	"time"

	"github.com/fencedlease/lease/internal/timeline"
)

// A picture is the timeline that lease watch -o draws. If the picture shows one lease, it has a lane for each
// holder. If it shows the leases under a prefix, it has a lane for each lease.
type picture struct {
	file    string
	group   bool
	drawing timeline.Drawing
}

func newPicture(file, name string) *picture {
	group := strings.HasSuffix(name, "/")
	return &picture{file: file, group: group, drawing: timeline.Drawing{Title: "leases " + name, Sorted: group}}
}

// draw adds changes, and writes the file. The file is complete after each call, so the program can be ended
// at any time.
func (p *picture) draw(changes []timeline.Change) error {
	if p == nil {
		return nil
	}
	now := time.Now()
	for _, c := range changes {
		p.drawing.Change(now, c, !p.group)
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
