package blobtest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
	"github.com/fencedlease/lease/internal/vectors"
	"github.com/fencedlease/lease/leasetest"
)

var update = flag.Bool("update", false, "write testdata/cells.json")

// A cell is a cell of one of the two outcome tables in leasetest/vectors, in the words of the service.
type cell struct {
	Action    string `json:"action"`              // such as "change A B"; A, B and C are lease IDs
	State     string `json:"state"`               // such as "Leased(A)"
	Status    int    `json:"status"`              // of the service
	Published int    `json:"published,omitempty"` // in the document, if it differs from the status of the service
	Code      string `json:"code,omitempty"`      // of a refusal; * stands for Blob or Container
	After     string `json:"after"`               // the state afterward; X is an ID that the service generates
}

// tables returns the cells of the two outcome tables, and a break without a period from the edge cases.
func tables(t *testing.T) (cells []cell) {
	t.Helper()
	all, err := vectors.Parse(leasetest.Vectors())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all.Rows {
		if row.File == "table.txt" || row.Name == "Break without a period" {
			for _, c := range row.Cells {
				cells = append(cells, serviceCell(t, row, c))
			}
		}
	}
	if len(cells) != 100 {
		t.Fatalf("%d cells, want 20 rows of 5", len(cells))
	}
	return cells
}

// serviceCell returns a cell of a row in the words of the service.
func serviceCell(t *testing.T, row vectors.Row, c vectors.Cell) cell {
	t.Helper()
	got := cell{Action: serviceAction(row), State: serviceState(c.Record), After: serviceState(c.Want.Of(c.Record, row.Now))}
	switch use := map[lease.Action]int{lease.ActionRead: 200, lease.ActionWrite: 201}; {
	case c.Status != "":
		got.Status = number(t, c.Status)
	case row.Pass > 0:
		got.Status = use[lease.ActionRead] // the state is read afterward
	default:
		got.Status = use[row.Request.Action] // the document has no status for a read or write that succeeds
	}
	if c.Service != "" {
		got.Status, got.Published = number(t, c.Service), got.Status
	}
	if c.Want.Code != 0 {
		got.Code = serviceCode(row.Request.Action, c.Want.Code)
	}
	return got
}

// serviceCode returns the error code with which the service refuses the action.
func serviceCode(a lease.Action, refusal lease.Code) string {
	operation := "LeaseOperation"
	if a == lease.ActionRead || a == lease.ActionWrite {
		operation = "*Operation"
	}
	switch refusal {
	case lease.ErrHeldByOther:
		return "LeaseAlreadyPresent"
	case lease.ErrBreaking:
		return map[lease.Action]string{
			lease.ActionAcquire: "LeaseIsBreakingAndCannotBeAcquired",
			lease.ActionChange:  "LeaseIsBreakingAndCannotBeChanged",
		}[a]
	case lease.ErrBroken:
		return "LeaseIsBrokenAndCannotBeRenewed"
	case lease.ErrIDMismatch:
		return "LeaseIdMismatchWith" + operation
	case lease.ErrIDMissing:
		return "LeaseIdMissing"
	case lease.ErrNotPresent:
		return "LeaseNotPresentWith" + operation
	case lease.ErrEnded:
		return "LeaseLost"
	}
	return "no error code for " + refusal.String()
}

// serviceAction returns the action of a row and its arguments.
func serviceAction(row vectors.Row) string {
	if row.Pass > 0 {
		return "expire"
	}
	req := row.Request
	words := []string{req.Action.String()}
	switch req.Action {
	case lease.ActionAcquire:
		words = append(words, strings.Replace(letter(req.Proposed), "X", "none", 1))
	case lease.ActionBreak:
		period := "none"
		if d, given := req.Period.Get(); given {
			period = strconv.Itoa(int(d / time.Second))
		}
		words = append(words, period)
	case lease.ActionChange:
		words = append(words, letter(req.ID), letter(req.Proposed))
	default:
		words = append(words, letter(req.ID))
	}
	return strings.Join(words, " ")
}

// serviceState returns the state of a record, such as "Leased(A)".
func serviceState(r lease.Record) string {
	state := r.State.String()
	state = strings.ToUpper(state[:1]) + state[1:]
	if r.State == lease.Available {
		return state
	}
	return state + "(" + letter(r.ID) + ")"
}

// letter returns the letter of a lease ID, or "none".
func letter(id lease.ID) string {
	for l, known := range vectors.IDs {
		if known == id {
			return l
		}
	}
	return "unknown"
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The tests with SDK clients read a file, which has the cells of the tables.
//
//	go test -run CellsOfSDKs . -update
func TestCellsOfSDKs(t *testing.T) {
	const file = "testdata/cells.json"
	var want bytes.Buffer
	for i, c := range tables(t) {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString(map[bool]string{true: "[\n", false: ",\n"}[i == 0])
		want.Write(b)
	}
	want.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not as leasetest/vectors says: run go test -run CellsOfSDKs . -update (%v)", file, err)
	}
}

// SPEC M1, W1: every cell of the published tables has the expected outcome, for blobs and for containers,
// with the statuses of the service and with those of the document.
func TestOutcomeTables(t *testing.T) {
	for _, c := range tables(t) {
		for _, kind := range []string{"blob", "container"} {
			for _, published := range []bool{false, true} {
				name := strings.Join([]string{kind, c.State, strings.ReplaceAll(c.Action, " ", "-")}, "/")
				if published {
					name += "/published"
				}
				t.Run(name, func(t *testing.T) { c.run(t, kind, published) })
			}
		}
	}
}

func (c cell) run(t *testing.T, kind string, published bool) {
	cl := newClient(t, blobtest.Options{PublishedTable: published})
	target, name := path, "box/blob"
	if kind == "container" {
		target, name = account+"/box?restype=container", "box"
	}
	op := func(status int, action string, h ...string) answer {
		t.Helper()
		sep := "?"
		if kind == "container" {
			sep = "&"
		}
		h = append([]string{"x-ms-lease-action", action}, h...)
		if status == 0 {
			return cl.do("PUT", target+sep+"comp=lease", h, "")
		}
		return cl.must(status, "PUT", target+sep+"comp=lease", h, "")
	}
	if c.State != "Available" {
		op(201, "acquire", "x-ms-proposed-lease-id", idA, "x-ms-lease-duration", "15")
	}
	switch c.State {
	case "Breaking(A)":
		op(202, "break", "x-ms-lease-break-period", "10")
	case "Broken(A)":
		op(202, "break", "x-ms-lease-break-period", "0")
	case "Expired(A)":
		cl.h.Clock().Step(15 * time.Second)
	}
	before := cl.do("HEAD", target, nil, "")

	words := strings.Fields(c.Action)
	id := map[string]string{"A": idA, "B": idB, "C": idC}
	var got answer
	switch words[0] {
	case "write", "read":
		h := []string{}
		if words[1] != "none" {
			h = append(h, "x-ms-lease-id", id[words[1]])
		}
		got = use(cl, kind, target, words[0], h)
	case "acquire":
		h := []string{"x-ms-lease-duration", "60"}
		if words[1] != "none" {
			h = append(h, "x-ms-proposed-lease-id", id[words[1]])
		}
		got = op(0, "acquire", h...)
	case "break":
		h := []string{}
		if words[1] != "none" {
			h = append(h, "x-ms-lease-break-period", words[1])
		}
		got = op(0, "break", h...)
	case "change":
		got = op(0, "change", "x-ms-lease-id", id[words[1]], "x-ms-proposed-lease-id", id[words[2]])
	case "renew", "release":
		got = op(0, words[0], "x-ms-lease-id", id[words[1]])
	case "expire":
		cl.h.Clock().Step(time.Minute)
		got = cl.do("HEAD", target, nil, "")
	}

	want := c.Status
	if published && c.Published != 0 {
		want = c.Published
	}
	if kind == "container" && want == 201 && words[0] == "write" {
		want = 202 // for a container, the write is a deletion
	}
	if got.status != want {
		t.Errorf("status %d, want %d: %s", got.status, want, got.body)
	}
	code := strings.Replace(c.Code, "*", map[string]string{"blob": "Blob", "container": "Container"}[kind], 1)
	if got.code() != code {
		t.Errorf("code %q, want %q", got.code(), code)
	}
	if code != "" && words[0] != "read" {
		if m := got.message(t); m.Code != code || !strings.Contains(m.Message, "\nRequestId:"+got.header.Get("x-ms-request-id")+"\nTime:") {
			t.Errorf("body %+v", m)
		}
	}
	if kind == "container" && got.status == 202 && words[0] == "write" {
		cl.must(404, "HEAD", target, nil, "")
		return
	}
	after := cl.must(200, "HEAD", target, nil, "")
	checkState(t, cl, name, after, c.After)
	if words[0] != "write" {
		for _, name := range []string{"ETag", "Last-Modified"} {
			if after.header.Get(name) != before.header.Get(name) {
				t.Errorf("%s changed", name)
			}
		}
	}
}

// use reads or writes the resource. For a container, the write is a deletion.
func use(cl *client, kind, target, what string, h []string) answer {
	switch {
	case what == "read":
		return cl.do("HEAD", target, h, "")
	case kind == "blob":
		return cl.do("PUT", target, append(h, "x-ms-blob-type", "BlockBlob"), "again")
	}
	return cl.do("DELETE", target, h, "")
}

// checkState compares the record and the headers with a state such as Leased(A).
func checkState(t *testing.T, cl *client, name string, got answer, want string) {
	t.Helper()
	res, err := lease.Inspect(t.Context(), cl.h.Authority(), "devstoreaccount1/"+name)
	if err != nil {
		t.Fatal(err)
	}
	state, rest, _ := strings.Cut(want, "(")
	if res.Record.State.String() != strings.ToLower(state) || got.header.Get("x-ms-lease-state") != strings.ToLower(state) {
		t.Errorf("afterward %v, the header has %q, want %s", res.Record.State, got.header.Get("x-ms-lease-state"), want)
	}
	locked := map[bool]string{true: "locked", false: "unlocked"}[state == "Leased" || state == "Breaking"]
	if got.header.Get("x-ms-lease-status") != locked {
		t.Errorf("x-ms-lease-status %q, want %s", got.header.Get("x-ms-lease-status"), locked)
	}
	if d := got.header.Get("x-ms-lease-duration"); (d == "fixed") != (state == "Leased") {
		t.Errorf("x-ms-lease-duration %q in state %s", d, state)
	}
	switch id := res.Record.ID.String(); strings.TrimSuffix(rest, ")") {
	case "A":
		if id != idA {
			t.Errorf("ID %s, want A", id)
		}
	case "B":
		if id != idB {
			t.Errorf("ID %s, want B", id)
		}
	case "X":
		if id == idA || id == idB {
			t.Errorf("ID %s, want a new one", id)
		}
	}
}
