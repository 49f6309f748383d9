package engine_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/engine"
)

// SPEC R3.
func TestRetainedText(t *testing.T) {
	for _, c := range []struct {
		text string
		kept engine.Retained
	}{
		{`{"state":"available","epoch":0}`, engine.Retained{}},
		{`{"state":"available","id":"aaaaaaaa-0000-4000-8000-000000000001","duration":"15s","epoch":7}`,
			engine.Retained{Record: lease.Record{ID: idA, Duration: 15 * time.Second, Epoch: 7}}},
		{`{"state":"leased","id":"aaaaaaaa-0000-4000-8000-000000000001","owner":"worker \"1\"","duration":"15s","left":"14.998s","epoch":7}`,
			engine.Retained{Record: lease.Record{State: lease.Leased, ID: idA, Owner: `worker "1"`, Duration: 15 * time.Second, Epoch: 7}, Left: 14998 * time.Millisecond}},
		{`{"state":"leased","id":"aaaaaaaa-0000-4000-8000-000000000001","duration":"infinite","epoch":7}`,
			engine.Retained{Record: lease.Record{State: lease.Leased, ID: idA, Duration: lease.Infinite, Epoch: 7}}},
		{`{"state":"breaking","id":"aaaaaaaa-0000-4000-8000-000000000001","duration":"infinite","left":"2562047h47m16.854775807s","epoch":9223372036854775807}`,
			engine.Retained{Record: lease.Record{State: lease.Breaking, ID: idA, Duration: lease.Infinite, Epoch: math.MaxInt64}, Left: math.MaxInt64}},
		{`{"state":"broken","id":"aaaaaaaa-0000-4000-8000-000000000001","duration":"1ns","epoch":1}`,
			engine.Retained{Record: lease.Record{State: lease.Broken, ID: idA, Duration: 1, Epoch: 1}}},
	} {
		if text, err := json.Marshal(c.kept); err != nil || string(text) != c.text {
			t.Errorf("%v is written as %s, %v\nwant %s", c.kept, text, err, c.text)
		}
		var kept engine.Retained
		if err := json.Unmarshal([]byte(c.text), &kept); err != nil || kept != c.kept {
			t.Errorf("%s is read as %v, %v", c.text, kept, err)
		}
	}
}

// SPEC R2, R3: UnmarshalJSON refuses a text that is not the JSON of a Retained, which is never a free lease.
func TestCorruptText(t *testing.T) {
	const id = `"id":"aaaaaaaa-0000-4000-8000-000000000001"`
	for _, text := range []string{
		``, `null`, `{}`, `[]`, `"leased"`, `{"state":"available"}`, `{"epoch":1}`, `{"state":"free","epoch":1}`,
		`{"state":"available","epoch":-1}`, `{"state":"available","epoch":9223372036854775808}`, `{"state":"available","epoch":1} {}`,
		`{"state":"available","epoch":1,"until":"2012-01-26T23:30:33Z"}`, `{"state":"leased","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"-1s","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"infinite","epoch":0}`,
		`{"state":"leased",` + id + `,"duration":"infinite","left":"1s","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"a while","left":"1s","epoch":1}`,
		`{"state":"expired",` + id + `,"duration":"15s","left":"1s","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"1s","epoch":1,"owner":"` + strings.Repeat("o", 1025) + `"}`,
		`{"state":"leased",` + strings.Repeat("x", 1000),
		`{"state":"leased","state":"available","epoch":1}`, `{"state":"available","epoch":2,"epoch":1}`, `{"STATE":"available","Epoch":1}`,
		`{"state":"available","epoch":1,"owner":null}`, `{"state":"available","epoch":1,"owner":""}`, `{"state":"available","epoch":1,"left":"0s"}`,
		`{"state":"available","epoch":1,"until":"1970-01-01T00:00:00Z"}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"9s","left":"1s","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"1000ms","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":null,"epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","until":"1970-01-01T00:00:00Z","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15000ms","left":"1s","epoch":1}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"1s","epoch":1,"owner":"\ud800"}`,
		`{"state":"leased",` + id + `,"duration":"15s","left":"1s","epoch":1,"owner":"` + "\xff" + `"}`,
		`{"state":"leased","id":"{AAAAAAAA-0000-4000-8000-000000000001}","duration":"15s","left":"1s","epoch":1}`,
	} {
		kept := engine.Retained{Record: lease.Record{Epoch: 42}}
		before := kept
		err := kept.UnmarshalJSON([]byte(text))
		if lease.CodeOf(err) != lease.ErrCorrupt || kept != before {
			t.Errorf("%.80s: %v, %v", text, kept, err)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%.80s: the message has %d bytes", text, len(err.Error()))
		}
	}
}

func FuzzRetained(f *testing.F) {
	f.Add([]byte(`{"state":"leased","id":"aaaaaaaa-0000-4000-8000-000000000001","duration":"15s","left":"14.998s","epoch":7}`))
	f.Add([]byte(`{"state":"available","epoch":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var kept, again engine.Retained
		if kept.UnmarshalJSON(data) != nil {
			return
		}
		text, err := kept.MarshalJSON()
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", data, err)
		}
		if err := again.UnmarshalJSON(text); err != nil || again != kept {
			t.Fatalf("%s was read as %v, written as %s and read as %v, %v", data, kept, text, again, err)
		}
	})
}
