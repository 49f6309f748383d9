package lease_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// noon is the moment in which the rows of testdata are tried.
var noon = time.Date(2012, 1, 26, 12, 0, 0, 0, time.UTC)

var ids = map[string]lease.ID{
	"-": {},
	"A": lease.MustParseID("1f812371-a41d-49e6-b123-f4b542e851c5"),
	"B": lease.MustParseID("00112233-4455-6677-8899-aabbccddeeff"),
	"C": lease.MustParseID("ca761232-ed42-11ce-bacd-00aa0057b223"),
	"X": lease.MustParseID("ffffffff-ffff-ffff-ffff-ffffffffffff"),
}

// A row is one row of a table in testdata, a cell one of its columns.
type row struct {
	quote, name string
	pass        time.Duration // instead of a request
	req         lease.Request
	cells       []cell
}

type cell struct {
	record             lease.Record // at noon
	published          string
	outcome            []string
	status, serviceHas string
}

// rows reads a file of testdata, in the format that testdata/README.md explains.
func rows(t *testing.T, file string) []row {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var (
		all     []row
		quote   string
		records = map[string]lease.Record{}
	)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		err := func() error {
			key, rest, _ := strings.Cut(line, " ")
			if columns := strings.Split(line, "|"); len(columns) > 1 {
				return addCell(all, records, columns)
			}
			switch key {
			case "quote":
				quote = rest
			case "records":
				clear(records)
			case "record":
				words := strings.Fields(rest)
				r, err := edit(lease.Record{}, words, noon)
				records[words[0]] = r
				return err
			case "row":
				all = append(all, row{quote: quote, name: rest})
			case "request":
				return all[len(all)-1].request(strings.Fields(rest))
			default:
				return fmt.Errorf("unknown word %q", key)
			}
			return nil
		}()
		if err != nil {
			t.Fatalf("%s:%d: %v", file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func addCell(all []row, records map[string]lease.Record, columns []string) error {
	for i := range columns {
		columns[i] = strings.TrimSpace(columns[i])
	}
	r, ok := records[columns[0]]
	if !ok || len(columns) != 5 || columns[2] == "" {
		return fmt.Errorf("a cell without a record, an outcome, or its five columns: %q", columns)
	}
	row := &all[len(all)-1]
	row.cells = append(row.cells, cell{r, columns[1], strings.Fields(columns[2]), columns[3], columns[4]})
	return nil
}

func (r *row) request(words []string) (err error) {
	if words[0] == "pass" {
		r.pass, err = time.ParseDuration(words[1])
		return err
	}
	if err := r.req.Action.UnmarshalText([]byte(words[0])); err != nil {
		return err
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "id":
			r.req.ID = ids[value]
		case "proposed":
			r.req.Proposed = ids[value]
		case "owner":
			r.req.Owner = value
		case "duration":
			r.req.Duration, err = duration(value)
		case "period":
			var d time.Duration
			d, err = duration(value)
			r.req.Period = lease.Grace(d)
		case "version":
			_, err = fmt.Sscanf(strings.ReplaceAll(value, "-", ""), "%d", &r.req.Version)
		default:
			err = fmt.Errorf("unknown argument %q", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// edit returns r in the state that words begin with and with the changes that follow, as of now.
func edit(r lease.Record, words []string, now time.Time) (lease.Record, error) {
	if err := r.State.UnmarshalText([]byte(words[0])); err != nil {
		return r, err
	}
	if !r.State.Locked() {
		r.Until = time.Time{}
	}
	for _, word := range words[1:] {
		var err error
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "id":
			r.ID = ids[value]
		case "owner":
			r.Owner = strings.Trim(value, "-")
		case "duration":
			r.Duration, err = duration(value)
		case "until", "until<":
			var d time.Duration
			if d, err = duration(value); value == "-" {
				r.Until = time.Time{}
			} else if key == "until" || now.Add(d).Before(r.Until) {
				r.Until = now.Add(d)
			}
		case "epoch":
			var n uint64
			n, err = strconv.ParseUint(strings.TrimPrefix(value, "+"), 10, 64)
			if value[0] == '+' {
				n += r.Epoch
			}
			r.Epoch = n
		default:
			err = fmt.Errorf("unknown field %q", key)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func duration(s string) (time.Duration, error) {
	switch s {
	case "-":
		return 0, nil
	case "infinite":
		return lease.Infinite, nil
	}
	return time.ParseDuration(s)
}

// in returns the row's cell for a state.
func (r row) in(s lease.State) (cell, bool) {
	for _, c := range r.cells {
		if c.record.State == s {
			return c, true
		}
	}
	return cell{}, false
}

// want returns what the cell says with r in the place of its record, at now.
func (c cell) want(t *testing.T, r lease.Record, now time.Time) (lease.Record, lease.Code) {
	t.Helper()
	var code lease.Code
	if c.outcome[0] != "ok" {
		if err := code.UnmarshalText([]byte(c.outcome[0])); err != nil {
			t.Fatal(err)
		}
		return r, code
	}
	next, err := edit(r, c.outcome[1:], now)
	if err != nil {
		t.Fatal(err)
	}
	return next, 0
}
