package leasetest

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
)

// parseVectors reads all vectors of a file system.
func parseVectors(fsys fs.FS) ([]scenario, error) {
	files, err := fs.Glob(fsys, "*.txt")
	if err != nil {
		return nil, err
	}
	var all []scenario
	for _, file := range files {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		found, err := parseFile(file, data)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func parseFile(file string, data []byte) (all []scenario, err error) {
	var current *scenario // the block under way
	end := func() {
		if current != nil {
			all = append(all, *current)
			current = nil
		}
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan() && err == nil; n++ {
		line := strings.TrimSpace(lines.Text())
		where := fmt.Sprintf("%s:%d", file, n)
		key, value, _ := strings.Cut(line, " ")
		value = strings.TrimSpace(value)
		given, text, cell := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			end()
		case key == "scenario":
			end()
			current = &scenario{file: where, name: value, given: "available"}
		case current == nil && cell:
			s, wrong := parseStep("0s " + strings.TrimSpace(text))
			name := strings.TrimSuffix(path.Base(file), ".txt") + " " + given + " " + strings.TrimSpace(strings.Split(text, "=>")[0])
			c := scenario{file: where, name: name, spec: []string{"M1"}, given: given, steps: []step{s}}
			c.needs = c.inferred()
			if err = wrong; setups[given] == nil {
				err = fmt.Errorf("unknown state %q", given)
			}
			all = append(all, c)
		case current == nil:
			err = fmt.Errorf("a line outside of a scenario")
		case key == "spec":
			current.spec = strings.Fields(value)
		case key == "needs":
			for _, word := range strings.Fields(value) {
				if needs[word] == 0 {
					err = fmt.Errorf("unknown need %q", word)
				}
				current.needs |= needs[word]
			}
		case key == "given":
			current.given = value
		default:
			var s step
			s, err = parseStep(line)
			current.steps = append(current.steps, s)
		}
		if err == nil && current != nil && setups[current.given] == nil {
			err = fmt.Errorf("unknown state %q", current.given)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	end()
	return all, lines.Err()
}

func parseStep(text string) (s step, err error) {
	s.text = text
	request, wanted, ok := strings.Cut(text, "=>")
	what, want := strings.Fields(request), strings.Fields(wanted)
	if !ok || len(what) < 2 || len(want) < 2 {
		return s, fmt.Errorf("a step needs a time, an action, =>, ok or a code, and a state")
	}
	if s.at, err = parseSeconds(what[0]); err != nil {
		return s, err
	}
	if err = s.req.Action.UnmarshalText([]byte(what[1])); err != nil {
		return s, err
	}
	for _, arg := range what[2:] {
		if err = s.argument(arg); err != nil {
			return s, err
		}
	}
	if want[0] != "ok" {
		if err = s.want.code.UnmarshalText([]byte(want[0])); err != nil {
			return s, err
		}
	}
	if err = s.want.state.UnmarshalText([]byte(want[1])); err != nil {
		return s, err
	}
	for _, field := range want[2:] {
		if err = s.want.parse(field); err != nil {
			return s, err
		}
	}
	return s, nil
}

// argument reads an argument of the request.
func (s *step) argument(arg string) (err error) {
	key, value, _ := strings.Cut(arg, "=")
	var d time.Duration
	switch key {
	case "id":
		s.req.ID, err = parseLetter(value)
	case "proposed":
		s.req.Proposed, err = parseLetter(value)
	case "owner":
		s.req.Owner = value
	case "duration":
		s.req.Duration, err = parseSeconds(value)
	case "period":
		d, err = parseSeconds(value)
		s.req.Period = lease.Grace(d)
	case "version":
		var t time.Time // also one that no version has
		t, err = time.Parse(time.DateOnly, value)
		s.req.Version = lease.Version(t.Year()*10000 + int(t.Month())*100 + t.Day())
	default:
		err = fmt.Errorf("unknown argument %q", arg)
	}
	return err
}

func (o *outcome) parse(field string) error {
	key, value, _ := strings.Cut(field, "=")
	switch key {
	case "id":
		id, err := parseLetter(value)
		o.id = &id
		return err
	case "owner":
		o.owner = &value
		return nil
	case "left":
		d, err := parseSeconds(value)
		o.left = &d
		return err
	case "epoch":
		n, err := strconv.ParseUint(strings.TrimPrefix(value, "+"), 10, 63)
		o.grants = &n
		return err
	}
	return fmt.Errorf("unknown field %q", field)
}

func parseLetter(s string) (lease.ID, error) {
	id, ok := letters[s]
	if !ok {
		return id, fmt.Errorf("unknown ID %q", s)
	}
	return id, nil
}

func parseSeconds(s string) (time.Duration, error) {
	if s == "infinite" {
		return lease.Infinite, nil
	}
	if !strings.HasSuffix(s, "s") {
		return 0, fmt.Errorf("%q is not a number of seconds", s)
	}
	return time.ParseDuration(s)
}
