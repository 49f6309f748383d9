package blobtest_test

import (
	"bufio"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/blobtest"
)

// A cell is a cell of one of the two tables: an action in a state, and its outcome.
type cell struct {
	action, state   string
	status          string // of the service
	published       string // of the document, if it differs
	code, afterward string
}

func readCells(t *testing.T) (cells []cell) {
	t.Helper()
	f, err := os.Open("testdata/cells.txt")
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
				if c.afterward == "" {
					c.afterward = c.state
				}
				c.status, c.published, _ = strings.Cut(c.status, "/")
				cells = append(cells, c)
			}
		}
	}
	if len(cells) != 100 {
		t.Fatalf("%d cells, want 20 rows of 5", len(cells))
	}
	return cells
}

// SPEC M1: every cell of the published tables has its outcome, for blobs and for containers, with the
// statuses of the service and with those of the document.
//
// SPEC W1.
func TestOutcomeTables(t *testing.T) {
	for _, c := range readCells(t) {
		for _, kind := range []string{"blob", "container"} {
			for _, published := range []bool{false, true} {
				name := strings.Join([]string{kind, c.state, strings.ReplaceAll(c.action, " ", "-")}, "/")
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
	if c.state != "Available" {
		op(201, "acquire", "x-ms-proposed-lease-id", idA, "x-ms-lease-duration", "15")
	}
	switch c.state {
	case "Breaking(A)":
		op(202, "break", "x-ms-lease-break-period", "10")
	case "Broken(A)":
		op(202, "break", "x-ms-lease-break-period", "0")
	case "Expired(A)":
		cl.h.Clock().Advance(15 * time.Second)
	}
	before := cl.do("HEAD", target, nil, "")

	words := strings.Fields(c.action)
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
		cl.h.Clock().Advance(time.Minute)
		got = cl.do("HEAD", target, nil, "")
	}

	want := c.status
	if published && c.published != "" {
		want = c.published
	}
	if kind == "container" && want == "201" && words[0] == "write" {
		want = "202" // a container is written by deleting it
	}
	if s := status(got); s != want {
		t.Errorf("status %s, want %s: %s", s, want, got.body)
	}
	code := strings.Replace(c.code, "*", map[string]string{"blob": "Blob", "container": "Container"}[kind], 1)
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
	checkState(t, cl, name, after, c.afterward)
	if words[0] != "write" {
		for _, name := range []string{"ETag", "Last-Modified"} {
			if after.header.Get(name) != before.header.Get(name) {
				t.Errorf("%s changed", name)
			}
		}
	}
}

// use reads or writes. A container is written by deleting it.
func use(cl *client, kind, target, what string, h []string) answer {
	switch {
	case what == "read":
		return cl.do("HEAD", target, h, "")
	case kind == "blob":
		return cl.do("PUT", target, append(h, "x-ms-blob-type", "BlockBlob"), "again")
	}
	return cl.do("DELETE", target, h, "")
}

func status(a answer) string {
	return string([]byte{byte('0' + a.status/100), byte('0' + a.status/10%10), byte('0' + a.status%10)})
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
