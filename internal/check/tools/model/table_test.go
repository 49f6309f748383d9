package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
)

// The model and table.pml use these numbers for an end that never comes, for a period that is not given,
// and for the first epoch that cannot be written.
const (
	never   = 255
	absent  = never - 1
	epochs  = 9
	limit   = uint64(1) << 63
	pmlUnit = time.Second
)

var epoch0 = time.Date(2012, 1, 26, 23, 30, 18, 0, time.UTC)

// pmlCodes maps the codes of machine.pml to the texts of lease.Code where the two differ.
var pmlCodes = map[string]string{"no_id": "id", "no_proposed": "proposed", "no_duration": "duration"}

// A cell is one line that table.pml prints.
type cell struct {
	before, after lease.Record
	req           lease.Request
	code          lease.Code
}

func parseCell(line string) (cell, error) {
	var c cell
	var state, action, code, next string
	var r, n struct {
		id, dur, left int
		epoch         uint64
	}
	var id, proposed, dur, period int
	_, err := fmt.Sscanf(line, "%s %d %d %d %d | %s %d %d %d %d | %s | %s %d %d %d %d",
		&state, &r.id, &r.dur, &r.left, &r.epoch, &action, &id, &proposed, &dur, &period, &code,
		&next, &n.id, &n.dur, &n.left, &n.epoch)
	if err != nil {
		return c, fmt.Errorf("%q: %w", line, err)
	}
	if c.before, err = record(state, r.id, r.dur, r.left, r.epoch); err != nil {
		return c, err
	}
	if c.after, err = record(next, n.id, n.dur, n.left, n.epoch); err != nil {
		return c, err
	}
	if err := c.req.Action.UnmarshalText([]byte(strings.TrimSuffix(action, "_"))); err != nil {
		return c, err
	}
	c.req.ID, c.req.Proposed, c.req.Duration = numbered(id), numbered(proposed), duration(dur)
	if period != absent {
		c.req.Period = lease.Grace(duration(period))
	}
	if code != "granted" {
		if word, ok := pmlCodes[code]; ok {
			code = word
		}
		err = c.code.UnmarshalText([]byte(strings.ReplaceAll(code, "_", "-")))
	}
	return c, err
}

func record(state string, id, dur, left int, epoch uint64) (lease.Record, error) {
	r := lease.Record{ID: numbered(id), Duration: duration(dur), Epoch: epoch}
	if left != never {
		r.Until = epoch0.Add(duration(left))
	}
	if epoch >= epochs-2 { // the last two epochs of the model stand for the last two epochs that a record can have
		r.Epoch = limit - epochs + epoch
	}
	return r, r.State.UnmarshalText([]byte(state))
}

func duration(d int) time.Duration {
	if d == never {
		return lease.Infinite
	}
	return time.Duration(d) * pmlUnit
}

func numbered(n int) lease.ID { return lease.ID{15: byte(n)} }

// TestTable compares the authority of the model with lease.Step in every cell of the table: every state
// at and around its end, every action, and IDs that match, differ or are missing.
//
// SPEC M1, M2, M3, M4, M5, M6, M7, M8, M9, M10, M11, M12, M13, M18, M19.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	if err := unpack(dir); err != nil {
		t.Fatal(err)
	}
	cells := table(t, dir)
	seen := make(map[string]bool) // (state, action, outcome)
	for _, c := range cells {
		if err := compare(c); err != nil {
			t.Error(err)
		}
		seen[fmt.Sprint(c.before.At(epoch0).State, c.req.Action, c.code)] = true
	}
	if want := 51 * 56; len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	t.Logf("%d cells are equal, %d kinds of (state, action, outcome)", len(cells), len(seen))
}

// TestTableTells adds known errors to the model, one at a time. Each must change some cell.
func TestTableTells(t *testing.T) {
	for _, bug := range []string{
		"ACQUIRE_ANY", "ACQUIRE_BREAKING", "RENEW_REVIVES", "RENEW_BROKEN", "CHANGE_ANY",
		"CHANGE_KEEPS_TOKEN", "RELEASE_ANY", "EPOCH_RESET", "BREAK_LENGTHENS",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := unpack(dir); err != nil {
				t.Fatal(err)
			}
			differ := 0
			for _, c := range table(t, dir, "-D"+bug) {
				if compare(c) != nil {
					differ++
				}
			}
			if differ == 0 {
				t.Errorf("no cell differs from lease.Step")
			}
			t.Logf("%d cells differ", differ)
		})
	}
}

func table(t *testing.T, dir string, switches ...string) []cell {
	t.Helper()
	out, err := run(t.Context(), dir, "spin", append(append([]string{"-T"}, switches...), "table.pml")...)
	if err != nil {
		t.Fatal(err)
	}
	var cells []cell
	for line := range strings.Lines(out) {
		if strings.Count(line, "|") != 3 {
			continue
		}
		c, err := parseCell(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, c)
	}
	return cells
}

func compare(c cell) error {
	next, err := lease.Step(c.before, c.req, epoch0)
	if next != c.after || lease.CodeOf(err) != c.code {
		return fmt.Errorf("%v on %v:\n\tlease.Step: %v, %v\n\tmodel:      %v, %v", c.req, c.before, next, err, c.after, c.code)
	}
	return nil
}
