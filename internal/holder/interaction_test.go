package holder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/check/interaction"
)

// TestInteractions runs the files testdata/*.txt, each a list of commands and of what the machines then ask
// their shells to do. testdata/README.md explains them.
func TestInteractions(t *testing.T) {
	interaction.Run(t, func() func(string) ([]string, error) {
		var w *world
		s := new(script)
		return func(command string) ([]string, error) {
			s.lines = nil
			err := s.run(&w, command)
			return s.lines, err
		}
	})
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
		return fmt.Errorf("property %s: %s", p.property, p.text)
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
