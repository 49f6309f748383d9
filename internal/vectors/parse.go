package vectors

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
)

// Parse reads all files of a file system that end in ".txt". An error names the file and the line.
func Parse(fsys fs.FS) (v Vectors, err error) {
	files, err := fs.Glob(fsys, "*.txt")
	if err != nil {
		return v, err
	}
	for _, file := range files {
		data, err := fs.ReadFile(fsys, file)
		if err != nil {
			return v, err
		}
		p := parser{file: file, now: Noon, records: map[string]lease.Record{}}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for n := 1; lines.Scan(); n++ {
			p.where = fmt.Sprintf("%s:%d", file, n)
			if err := p.line(strings.TrimSpace(lines.Text())); err != nil {
				return v, fmt.Errorf("%s: %w", p.where, err)
			}
		}
		v.Rows = append(v.Rows, p.rows...)
		v.Scenarios = append(v.Scenarios, p.scenarios...)
		if err := lines.Err(); err != nil {
			return v, err
		}
	}
	return v, nil
}

type parser struct {
	file, where string
	rows        []Row
	scenarios   []Scenario

	scenario bool // a scenario is open
	row      bool // a row is open
	quote    string
	now      time.Time
	records  map[string]lease.Record // by the name of the state
}

func (p *parser) line(line string) (err error) {
	key, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case strings.HasPrefix(line, "#"):
	case line == "":
		p.scenario, p.row = false, false
	case p.scenario:
		return p.inScenario(&p.scenarios[len(p.scenarios)-1], key, rest, line)
	case strings.Contains(line, "|") && p.row:
		return p.cell(&p.rows[len(p.rows)-1], strings.Split(line, "|"))
	case key == "scenario":
		p.scenario = true
		p.scenarios = append(p.scenarios, Scenario{Where: p.where, Name: rest, Given: "available"})
	case key == "quote":
		p.quote = rest
	case key == "records":
		clear(p.records)
	case key == "now":
		p.now, err = time.Parse(time.RFC3339Nano, rest)
		clear(p.records)
	case key == "record":
		return p.record(strings.Fields(rest))
	case key == "row":
		p.row = true
		p.rows = append(p.rows, Row{File: p.file, Name: rest, Quote: p.quote, Now: p.now})
	case key == "spec" && p.row:
		p.rows[len(p.rows)-1].Spec = strings.Fields(rest)
	case key == "request" && p.row:
		return p.request(&p.rows[len(p.rows)-1], strings.Fields(rest))
	default:
		return fmt.Errorf("a line outside of a row and of a scenario: %q", line)
	}
	return err
}

func (p *parser) inScenario(s *Scenario, key, rest, line string) (err error) {
	switch key {
	case "spec":
		s.Spec = strings.Fields(rest)
	case "needs":
		s.Needs = strings.Fields(rest)
	case "given":
		if s.Given = rest; !slices.Contains(States(), rest) {
			err = fmt.Errorf("unknown state %q", rest)
		}
	default:
		var step Step
		step, err = ParseStep(line)
		s.Steps = append(s.Steps, step)
	}
	return err
}

// record reads "leased id=A duration=60s left=60s epoch=7".
func (p *parser) record(words []string) error {
	o, err := outcome(append([]string{"ok"}, words...))
	if err == nil {
		p.records[words[0]] = o.Of(lease.Record{}, p.now)
		err = p.records[words[0]].Validate()
	}
	return err
}

func (p *parser) request(r *Row, words []string) (err error) {
	if len(words) == 2 && words[0] == "pass" {
		r.Pass, err = seconds(words[1])
		return err
	}
	r.Request, err = request(words)
	return err
}

// cell reads "leased | Leased (A) | ok leased | 200 |".
func (p *parser) cell(r *Row, columns []string) error {
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	record, ok := p.records[columns[0]]
	if !ok || len(columns) != 5 {
		return fmt.Errorf("a cell needs a record and five columns: %q", columns)
	}
	words := strings.Fields(columns[2])
	if len(words) == 1 { // A refusal does not change the state.
		words = append(words, columns[0])
	}
	want, err := outcome(words)
	r.Cells = append(r.Cells, Cell{p.where, record, columns[1], want, columns[3], columns[4]})
	return err
}

// ParseStep reads "10s acquire proposed=A duration=15s => ok leased id=A left=15s epoch=+1".
func ParseStep(text string) (s Step, err error) {
	s.Text = text
	asked, wanted, ok := strings.Cut(text, "=>")
	what := strings.Fields(asked)
	if !ok || len(what) < 2 {
		return s, fmt.Errorf("a step needs a time, an action, =>, ok or a code, and a state")
	}
	if s.At, err = seconds(what[0]); err != nil {
		return s, err
	}
	if s.Request, err = request(what[1:]); err != nil {
		return s, err
	}
	s.Want, err = outcome(strings.Fields(wanted))
	return s, err
}

// request reads an action and its arguments.
func request(words []string) (req lease.Request, err error) {
	if len(words) == 0 {
		return req, fmt.Errorf("a request needs an action")
	}
	if words[0] != "none" {
		if err := req.Action.UnmarshalText([]byte(words[0])); err != nil {
			return req, err
		}
	}
	for _, arg := range words[1:] {
		key, value, _ := strings.Cut(arg, "=")
		var d time.Duration
		switch key {
		case "id":
			req.ID, err = id(value)
		case "proposed":
			req.Proposed, err = id(value)
		case "owner":
			if req.Owner = value; value == "overlong" {
				req.Owner = strings.Repeat("o", fields.MaxLabel+1)
			}
		case "duration":
			req.Duration, err = seconds(value)
		case "period":
			d, err = seconds(value)
			req.Period = lease.Grace(d)
		case "version":
			var t time.Time // No version needs to have this date.
			t, err = time.Parse(time.DateOnly, value)
			req.Version = lease.Version(t.Year()*10000 + int(t.Month())*100 + t.Day())
		default:
			err = fmt.Errorf("unknown argument %q", arg)
		}
		if err != nil {
			return req, err
		}
	}
	return req, nil
}

// outcome reads "ok leased id=A", or a code and a state.
func outcome(words []string) (o Outcome, err error) {
	if len(words) < 2 {
		return o, fmt.Errorf("an outcome needs ok or a code, and a state")
	}
	if words[0] != "ok" {
		if err := o.Code.UnmarshalText([]byte(words[0])); err != nil {
			return o, err
		}
	}
	if err := o.State.UnmarshalText([]byte(words[1])); err != nil {
		return o, err
	}
	for _, field := range words[2:] {
		if err := o.field(field); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *Outcome) field(field string) (err error) {
	key, value, _ := strings.Cut(field, "=")
	var (
		l lease.ID
		d time.Duration
		n uint64
	)
	switch key {
	case "id":
		l, err = id(value)
		o.ID = &l
	case "owner":
		if value == "none" {
			value = ""
		}
		o.Owner = &value
	case "duration":
		d, err = seconds(value)
		o.Duration = &d
	case "left", "left<":
		d, err = seconds(value)
		o.Left, o.AtMost = &d, key == "left<"
	case "epoch":
		n, err = strconv.ParseUint(strings.TrimPrefix(value, "+"), 10, 63)
		o.Epoch = &n
	default:
		err = fmt.Errorf("unknown field %q", field)
	}
	return err
}

func id(s string) (lease.ID, error) {
	id, ok := IDs[s]
	if !ok {
		return id, fmt.Errorf("unknown ID %q", s)
	}
	return id, nil
}

func seconds(s string) (time.Duration, error) {
	switch {
	case s == "infinite":
		return lease.Infinite, nil
	case s == "none":
		return 0, nil
	case !strings.HasSuffix(s, "s"):
		return 0, fmt.Errorf("%q is not a number of seconds", s)
	}
	return time.ParseDuration(s)
}
