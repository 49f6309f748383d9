package holder

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

var update = flag.Bool("update", false, "write the interaction files again")

// TestInteractions runs the files testdata/*.txt, each a list of commands and of what the machines then ask
// their shells to do. testdata/README.md explains them.
func TestInteractions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files:", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := interact(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("%s\n(go test -run Interactions -update writes the files again)", firstDifference(string(text), got))
			}
			if strings.Contains(got, "PROBLEM") {
				t.Errorf("a property does not hold:\n%s", got[strings.Index(got, "PROBLEM"):])
			}
		})
	}
}

// interact runs an interaction file, and returns the file with the results of each command.
func interact(text string) (string, error) {
	var w *world
	var commands []string
	s := new(script)
	results := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case line == "----":
			s.file.WriteString("----\n")
			for _, command := range commands {
				if err := s.run(&w, command); err != nil {
					return "", fmt.Errorf("line %d: %w", i, err)
				}
			}
			s.result("")
			commands, results = nil, true
		case line == "":
			if !results {
				s.file.WriteString("\n")
			}
			results = false
		case results:
		case strings.HasPrefix(line, "#"):
			s.file.WriteString(line + "\n")
		default:
			commands = append(commands, line)
			s.file.WriteString(line + "\n")
		}
	}
	return strings.TrimRight(s.file.String(), "\n") + "\n", nil
}

// run runs one command.
func (s *script) run(w **world, command string) error {
	verb, rest, _ := strings.Cut(command, " ")
	switch {
	case *w == nil && verb == "config":
		for _, c := range configs {
			if c.name == rest {
				*w = newWorld(c)
				(*w).script = s
				return nil
			}
		}
		return fmt.Errorf("no configuration %q", rest)
	case *w == nil && verb == "world":
		c, err := scriptConfig(rest)
		if err != nil {
			return err
		}
		*w = newWorld(c)
		(*w).script = s
		(*w).describe()
		return nil
	case *w == nil:
		return fmt.Errorf("%q comes before the world", command)
	}
	if verb == "break" {
		if err := (*w).cfg.allow(rest); err != nil {
			return err
		}
	}
	e, err := (*w).parse(command)
	if err != nil {
		return err
	}
	was := (*w).problem
	(*w).do(e)
	if p := (*w).problem; p != was {
		s.lines = append(s.lines, "PROBLEM "+p.property+": "+p.text)
	}
	return nil
}

// scriptConfig reads the settings of a world. The setting holders=2 adds a second holder. The
// settings duration, interval, margin, window, infinite, owner and takes-over set options of the
// holders. With the setting hides, the refusals of the authority do not show IDs. The setting
// unsure is the difference between the time that a lease has left and the time that the authority
// guarantees. The setting rival is the owner of the rival.
func scriptConfig(settings string) (*config, error) {
	c := config{name: "world"}
	o := plain("ada")
	equal := false
	for _, s := range strings.Fields(settings) {
		key, value, _ := strings.Cut(s, "=")
		d, err := time.ParseDuration(value)
		switch key {
		case "holders":
			c.holders, err = int(value[0]-'0'), nil
		case "infinite":
			o.Duration, err = lease.Infinite, nil
		case "duration":
			o.Duration = d
		case "interval":
			o.RenewInterval = d
		case "margin":
			o.Margin = d
		case "window":
			o.StopWindow = d
		case "owner":
			o.Owner, equal, err = value, true, nil
		case "takes-over":
			o.TakeOver, equal, err = true, true, nil
		case "hides":
			c.hides, err = true, nil
		case "unsure":
			c.unsure = d
		case "rival":
			c.rivalOwner, err = value, nil
		default:
			return nil, fmt.Errorf("no setting %q", key)
		}
		if err != nil {
			return nil, err
		}
	}
	c.options = [2]Options{o, o}
	if !equal {
		c.options[1].Owner = "bob"
	}
	return c.make(), nil
}

// allow adds a period to the periods with which an operator may break the lease.
func (c *config) allow(period string) error {
	p := lease.Period{}
	if period != "absent" {
		d, err := time.ParseDuration(period)
		if err != nil {
			return err
		}
		p = lease.Grace(d)
	}
	c.periods = append(c.periods[:len(c.periods):len(c.periods)], p)
	return nil
}

// describe writes down the times that follow from the options.
func (w *world) describe() {
	o := &w.cfg.options[0]
	if o.Duration == lease.Infinite {
		w.note("a lease that never ends, renewed every %v", o.RenewInterval)
	} else {
		w.note("a grant of %v is believed for %v, and renewed every %v", o.Duration, o.Budget(o.Duration), o.RenewInterval)
	}
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range as {
		if i >= len(bs) || as[i] != bs[i] {
			got := "(end)"
			if i < len(bs) {
				got = bs[i]
			}
			return fmt.Sprintf("line %d\nhas %s\nand now %s", i+1, as[i], got)
		}
	}
	return "there is more now"
}
