package lease_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/internal/fields"
	"github.com/fencedlease/lease/internal/vectors"
)

var held = lease.Record{
	State: lease.Leased, ID: vectors.MustParseID("1f812371-a41d-49e6-b123-f4b542e851c5"), Owner: "worker-1",
	Duration: 15 * time.Second, Until: time.Date(2012, 1, 26, 23, 30, 33, 0, time.UTC), Epoch: 7,
}

const (
	heldJSON = `{"state":"leased","epoch":7,"id":"1f812371-a41d-49e6-b123-f4b542e851c5","duration":"15s","until":"2012-01-26T23:30:33Z","owner":"worker-1"}`
	heldText = `leased epoch=7 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=15s until=2012-01-26T23:30:33Z owner="worker-1"`
)

// The text of each record is fixed, because a store must read records of older versions. SPEC R3.
func TestRecordText(t *testing.T) {
	infinite := held
	infinite.Duration, infinite.Until, infinite.Owner = lease.Infinite, time.Time{}, ""
	strange := held
	strange.Owner, strange.Until = "a \"b\" owner=c\nü\u2028<&>", held.Until.Add(500*time.Millisecond)
	for _, c := range []struct {
		r          lease.Record
		json, text string
	}{
		{lease.Record{}, `{"state":"available","epoch":0}`, "available epoch=0"},
		{lease.Record{Epoch: 1<<63 - 1}, `{"state":"available","epoch":9223372036854775807}`, "available epoch=9223372036854775807"},
		{held, heldJSON, heldText},
		{infinite, `{"state":"leased","epoch":7,"id":"1f812371-a41d-49e6-b123-f4b542e851c5","duration":"infinite"}`,
			"leased epoch=7 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=infinite"},
		{strange, `{"state":"leased","epoch":7,"id":"1f812371-a41d-49e6-b123-f4b542e851c5","duration":"15s","until":"2012-01-26T23:30:33.5Z","owner":"a \"b\" owner=c\nü\u2028\u003c\u0026\u003e"}`,
			`leased epoch=7 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=15s until=2012-01-26T23:30:33.5Z owner="a \"b\" owner=c\nü\u2028<&>"`},
	} {
		j, err := json.Marshal(c.r)
		if string(j) != c.json || err != nil {
			t.Errorf("JSON:\n got %s, %v\nwant %s", j, err, c.json)
		}
		text, err := c.r.MarshalText()
		if string(text) != c.text || err != nil {
			t.Errorf("text:\n got %s, %v\nwant %s", text, err, c.text)
		}
	}
	// The engine of a store may change the order and the white space of the JSON.
	var got lease.Record
	if err := json.Unmarshal([]byte(` { "owner" : "worker-1", "until":"2012-01-26T23:30:33Z",
		"duration":"15s", "id":"1f812371-a41d-49e6-b123-f4b542e851c5", "epoch": 7 , "state":"leased" } `), &got); err != nil || got != held {
		t.Errorf("%+v, %v", got, err)
	}
}

// SPEC R3: decoding an encoded record gives the same record.
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := records().Draw(t, "record")
		r.Until = r.Until.Add(0)
		var a, b lease.Record
		j, err := json.Marshal(r)
		if err != nil || json.Unmarshal(j, &a) != nil || a != r {
			t.Fatalf("%+v\n%s, %v\n%+v", r, j, err, a)
		}
		text, err := r.MarshalText()
		if err != nil || b.UnmarshalText(text) != nil || b != r {
			t.Fatalf("%+v\n%s, %v\n%+v", r, text, err, b)
		}
	})
}

// UnmarshalJSON refuses a text that MarshalJSON never writes as corrupt. The error names the field, its
// value and the bound, and the record stays unchanged. SPEC R2, R3.
func TestHostileJSON(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(heldJSON, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(heldJSON, old, new, 1)
	}
	for name, c := range map[string]struct{ data, says string }{
		"nothing":                  {``, "must be one JSON object"},
		"null":                     {`null`, "must be one JSON object"},
		"a string":                 {`"leased"`, "must be one JSON object"},
		"an array":                 {`[]`, "must be one JSON object"},
		"no fields":                {`{}`, "Record.state = \"\": must be given"},
		"not closed":               {heldJSON[:len(heldJSON)-1], "must be one JSON object"},
		"cut within a value":       {heldJSON[:30], "must be one JSON object"},
		"closed by a bracket":      {heldJSON[:len(heldJSON)-1] + "]", "must be one JSON object"},
		"two of them":              {heldJSON + heldJSON, "must be one JSON object"},
		"something behind":         {heldJSON + "x", "must be one JSON object"},
		"a comma behind":           {with(`"}`, `",}`), "must be one JSON object"},
		"no state":                 {with(`"state":"leased",`, ``), "Record.state = \"\": must be given"},
		"no epoch":                 {with(`"epoch":7,`, ``), "Record.epoch = \"\": must be given"},
		"state null":               {with(`"leased"`, `null`), "must be one JSON object"},
		"state in capitals":        {with(`"leased"`, `"Leased"`), `Record.state = "Leased": must be one of the five states`},
		"state of another name":    {with(`"leased"`, `"locked"`), `Record.state = "locked"`},
		"state a number":           {with(`"leased"`, `1`), "must be one JSON object"},
		"key in capitals":          {with(`"state"`, `"State"`), `Record = "State": is not a field of a record`},
		"key misspelt":             {with(`"until"`, `"untill"`), `Record = "untill": is not a field of a record`},
		"key twice":                {with(`"epoch":7`, `"epoch":7,"epoch":8`), `Record = "epoch": must not be given twice`},
		"key twice, equal":         {with(`"epoch":7`, `"epoch":7,"epoch":7`), `must not be given twice`},
		"epoch in words":           {with(`7`, `"7"`), "must be one JSON object"},
		"epoch negative":           {with(`:7`, `:-7`), `Record.epoch = "-7": must be a number below 1<<63`},
		"epoch with a fraction":    {with(`:7`, `:7.0`), `Record.epoch = "7.0"`},
		"epoch with an exponent":   {with(`:7`, `:7e0`), `Record.epoch = "7e0"`},
		"epoch of 1<<63":           {with(`:7`, `:9223372036854775808`), `Record.Epoch = 9223372036854775808: must be below 1<<63`},
		"epoch of 1<<64":           {with(`:7`, `:18446744073709551616`), `Record.epoch = "18446744073709551616"`},
		"epoch of zero":            {with(`:7`, `:0`), `Record.Epoch = 0: must be at least 1`},
		"ID null":                  {with(`"1f812371-a41d-49e6-b123-f4b542e851c5"`, `null`), "must be one JSON object"},
		"ID empty":                 {with(`1f812371-a41d-49e6-b123-f4b542e851c5`, ``), `Record.id = "": must be a GUID`},
		"ID in capitals":           {with(`1f812371`, `1F812371`), `Record.id = "1F812371-a41d-49e6-b123-f4b542e851c5": must be a GUID in format D`},
		"ID zero":                  {with(`1f812371-a41d-49e6-b123-f4b542e851c5`, `00000000-0000-0000-0000-000000000000`), `Record.id`},
		"ID cut":                   {with(`c5"`, `"`), `Record.id`},
		"no ID":                    {with(`"id":"1f812371-a41d-49e6-b123-f4b542e851c5",`, ``), `Record.ID = `},
		"duration zero":            {with(`15s`, `0s`), `Record.duration = "0s"`},
		"duration negative":        {with(`15s`, `-15s`), `Record.Duration = -15s: must be positive`},
		"duration a number":        {with(`"15s"`, `15`), "must be one JSON object"},
		"duration without unit":    {with(`15s`, `15`), `Record.duration = "15": must be a duration`},
		"duration in another form": {with(`15s`, `15000ms`), `Record.duration = "15000ms": must be a duration as Go writes it`},
		"duration too long":        {with(`15s`, `9999999h`), `Record.duration = "9999999h"`},
		"infinite in figures":      {with(`15s`, `2562047h47m16.854775807s`), `Record.duration`},
		"infinite, with an end":    {with(`15s`, `infinite`), `Record.Until = 2012-01-26 23:30:33 +0000 UTC: must be zero for an infinite lease`},
		"no duration":              {with(`"duration":"15s",`, ``), `Record.Duration = 0s: must be positive`},
		"until in another zone":    {with(`33Z`, `33+00:00`), `Record.until = "2012-01-26T23:30:33+00:00": must be a time`},
		"until with an offset":     {with(`33Z`, `33+02:00`), `Record.until`},
		"until with zeros":         {with(`33Z`, `33.50Z`), `Record.until`},
		"until with a comma":       {with(`33Z`, `33,5Z`), `Record.until`},
		"until with one digit":     {with(`T23`, `T3`), `Record.until`},
		"until in lower case":      {with(`T23`, `t23`), `Record.until`},
		"until a date":             {with(`T23:30:33Z`, ``), `Record.until`},
		"until of February 30":     {with(`01-26`, `02-30`), `Record.until`},
		"until in the year 0":      {with(`2012-`, `0000-`), `Record.Until`},
		"until zero":               {with(`2012-01-26T23:30:33Z`, `0001-01-01T00:00:00Z`), `Record.until`},
		"until in the year 10000":  {with(`2012-`, `10000-`), `Record.until`},
		"no until":                 {with(`"until":"2012-01-26T23:30:33Z",`, ``), `Record.Until = 0001-01-01 00:00:00 +0000 UTC: must be set`},
		"owner empty":              {with(`worker-1`, ``), `Record.owner = "": must not be empty`},
		"owner with NUL":           {with(`worker-1`, `a\u0000`), `Record.Owner = "a\x00"`},
		"owner too long":           {with(`worker-1`, strings.Repeat("x", 1025)), `(1025 bytes)`},
		"owner not UTF-8":          {with(`worker-1`, "a\xff"), "must be one JSON object"},
		"owner of half a pair":     {with(`worker-1`, `a\ud800`), "must be one JSON object"},
		"half a pair beside":       {with(`worker-1`, "\ufffd"+`\ud800`), "must be one JSON object"},
		"half a pair, escaped":     {with(`worker-1`, `\ufffd\ud800`), "must be one JSON object"},
		"a low half":               {with(`worker-1`, "\ufffd"+`\udc00a`), "must be one JSON object"},
		"two high halves":          {with(`worker-1`, "\ufffd"+`\ud800\ud800`), "must be one JSON object"},
		"halves in disorder":       {with(`worker-1`, "\ufffd"+`\udc00\ud800`), "must be one JSON object"},
		"halves apart":             {with(`worker-1`, "\ufffd"+`\ud800 \udc00`), "must be one JSON object"},
		"half a pair, then a word": {with(`worker-1`, "\ufffd"+`\ud800\n\udc00`), "must be one JSON object"},
		"half behind a pair":       {with(`worker-1`, "\ufffd"+`\ud83d\ude00\ude00`), "must be one JSON object"},
		"half behind a backslash":  {with(`worker-1`, "\ufffd"+`\\\ud800`), "must be one JSON object"},
		"half a pair, then udc00":  {with(`worker-1`, `\ud800xudc00`), "must be one JSON object"},
		"cut in an escape":         {`{"` + strings.Repeat("x", 28) + `\u`, "must be one JSON object"}, // 32 bytes: the slice has no spare capacity
		"owner an object":          {with(`"worker-1"`, `{"a":1}`), "must be one JSON object"},
		"owner an array":           {with(`"worker-1"`, `["a"]`), "must be one JSON object"},
		"owner true":               {with(`"worker-1"`, `true`), "must be one JSON object"},
		"very deep":                {strings.Repeat("[", 1<<20), "must be one JSON object"},
		"very long":                {`{"state":"` + strings.Repeat("x", 1<<20) + `"}`, "Record.state"},
	} {
		t.Run(name, func(t *testing.T) { checkCorrupt(t, (*lease.Record).UnmarshalJSON, c.data, c.says) })
	}
}

// Any character may be escaped, including U+FFFD and characters that need a surrogate pair.
// SPEC R3.
func TestEscapes(t *testing.T) {
	for escaped, owner := range map[string]string{
		`\ufffd`: "\ufffd", `a\uFFFD`: "a\ufffd", "\ufffd" + `\uFFFDb`: "\ufffd\ufffdb",
		`\ud83d\ude00`: "😀", `\uD83D\uDE00\uD83D\uDE00`: "😀😀", "\ufffd" + `\ud83d\ude00`: "\ufffd😀",
		`\\ud800`: `\ud800`, `\\d800`: `\d800`, `\u005cud800`: `\ud800`, `\"\/`: `"/`, `\u0077orker-1`: "worker-1",
	} {
		var r lease.Record
		want := held
		want.Owner = owner
		if err := json.Unmarshal([]byte(strings.Replace(heldJSON, "worker-1", escaped, 1)), &r); err != nil || r != want {
			t.Errorf("%s: %q, %v, want %q", escaped, r.Owner, err, owner)
		}
	}
}

// SPEC R2, R3.
func TestHostileText(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(heldText, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(heldText, old, new, 1)
	}
	for name, c := range map[string]struct{ data, says string }{
		"nothing":               {"", `Record.state = "": must be one of the five states`},
		"a state":               {"available", `Record.epoch = "": must be given`},
		"state in capitals":     {with("leased", "LEASED"), `Record.state = "LEASED"`},
		"white space before":    {" " + heldText, `Record = "leased": is not a field`},
		"white space behind":    {heldText + " ", `Record.owner = `},
		"two spaces":            {with(" id", "  id"), `Record = "": is not a field`},
		"a line behind":         {heldText + "\n", `Record.owner`},
		"other order":           {with("epoch=7 id=1f812371-a41d-49e6-b123-f4b542e851c5", "id=1f812371-a41d-49e6-b123-f4b542e851c5 epoch=7"), "must be state, epoch, id, duration, until and owner, in this order"},
		"key twice":             {with("epoch=7", "epoch=7 epoch=8"), `Record = "epoch": must not be given twice`},
		"state twice":           {with("epoch=7", "state=leased epoch=7"), `Record = "state": must not be given twice`},
		"key in capitals":       {with("epoch", "Epoch"), `Record = "Epoch": is not a field`},
		"unknown key":           {with("epoch=7", "epoch=7 ttl=5s"), `Record = "ttl": is not a field`},
		"key without a value":   {with("epoch=7", "epoch"), `Record.epoch = "": must be a number`},
		"epoch with a sign":     {with("=7", "=+7"), `Record.epoch = "+7": must be a number`},
		"epoch with zeros":      {with("=7", "=07"), `Record.epoch = "07"`},
		"epoch in hexadecimal":  {with("=7", "=0x7"), `Record.epoch = "0x7"`},
		"duration not a word":   {with("15s", "15 s"), `is not a field`},
		"duration of zero":      {"available epoch=1 duration=0s", `Record.duration = "0s"`},
		"owner not quoted":      {with(`"worker-1"`, `worker-1`), `Record.owner = "worker-1": must be quoted`},
		"owner in backquotes":   {with(`"worker-1"`, "`worker-1`"), "in this order and as they are written"},
		"owner a letter":        {with(`"worker-1"`, `'w'`), "in this order and as they are written"},
		"owner empty":           {with(`"worker-1"`, `""`), `Record.owner = "": must not be empty`},
		"owner escaped":         {with(`worker-1`, `\x77orker-1`), "in this order and as they are written"},
		"owner twice":           {heldText + ` owner="b"`, `Record.owner`},
		"owner before":          {with("epoch=7", `owner="b" epoch=7`), `Record.owner`},
		"owner not UTF-8":       {with("worker-1", "a\xff"), "as they are written"},
		"owner beside UTF-8":    {with("worker-1", "\ufffd\xff"), "as they are written"},
		"owner of half a pair":  {with("worker-1", "\ufffd\\ud800"), "must be quoted"},
		"owner of a free lease": {`available epoch=1 owner="a"`, `Record.Owner = "a": must be empty where no ID is known`},
		"JSON":                  {heldJSON, `Record.state`},
		"very long":             {strings.Repeat("x", 1<<20), `Record.state`},
	} {
		t.Run(name, func(t *testing.T) { checkCorrupt(t, (*lease.Record).UnmarshalText, c.data, c.says) })
	}
}

func checkCorrupt(t *testing.T, decode func(*lease.Record, []byte) error, data, says string) {
	t.Helper()
	r := held
	err := decode(&r, []byte(data))
	var field *lease.FieldError
	if !errors.Is(err, lease.ErrCorrupt) || !errors.As(err, &field) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want %s", err, says)
	} else if len(err.Error()) > 600 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
	if r != held {
		t.Errorf("it was changed to %+v", r)
	}
}

// ValidateAfter accepts a record only if the record is valid and its epoch is not lower than the
// epoch of the old record. SPEC M4, R2.
func TestValidateAfter(t *testing.T) {
	for _, c := range []struct {
		epoch uint64
		state lease.State
		says  string
	}{
		{6, lease.Available, "Record.Epoch = 6: must not fall below 7"},
		{7, lease.Available, ""},
		{8, lease.Available, ""},
		{8, lease.Leased, "Record.ID = 00000000-0000-0000-0000-000000000000: must be given in state leased"},
	} {
		err := lease.Record{State: c.state, Epoch: c.epoch}.ValidateAfter(lease.Record{Epoch: 7})
		if (err == nil) != (c.says == "") || err != nil && (err.Error() != c.says || lease.CodeOf(err) != lease.ErrCorrupt) {
			t.Errorf("%v, epoch %d: %v, want %q", c.state, c.epoch, err, c.says)
		}
	}
}

// A record is written only if it is valid. For each rule of Validate, a record that breaks the rule
// gets an error that names the field. SPEC R1.
func TestValidate(t *testing.T) {
	if err := (lease.Record{}).Validate(); err != nil {
		t.Errorf("the zero record: %v", err)
	}
	change := func(f func(*lease.Record)) lease.Record {
		r := held
		f(&r)
		return r
	}
	last := time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	for name, r := range map[string]lease.Record{
		"the last end":       change(func(r *lease.Record) { r.Until = last }),
		"the shortest":       change(func(r *lease.Record) { r.Duration = 1 }),
		"the first end":      change(func(r *lease.Record) { r.Until = time.Time{}.Add(1) }),
		"the last epoch":     change(func(r *lease.Record) { r.Epoch = 1<<63 - 1 }),
		"the longest owner":  change(func(r *lease.Record) { r.Owner = strings.Repeat("x", fields.MaxLabel) }),
		"broken, infinite":   change(func(r *lease.Record) { r.State, r.Duration, r.Until = lease.Broken, lease.Infinite, time.Time{} }),
		"breaking, infinite": change(func(r *lease.Record) { r.State, r.Duration = lease.Breaking, lease.Infinite }),
		"released, infinite": change(func(r *lease.Record) { r.State, r.Duration, r.Until = lease.Available, lease.Infinite, time.Time{} }),
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		r     lease.Record
		field string
	}{
		"unknown state":          {change(func(r *lease.Record) { r.State = 5 }), "State"},
		"epoch too high":         {change(func(r *lease.Record) { r.Epoch = 1 << 63 }), "Epoch"},
		"epoch zero":             {change(func(r *lease.Record) { r.Epoch = 0 }), "Epoch"},
		"until in a zone":        {change(func(r *lease.Record) { r.Until = r.Until.In(time.FixedZone("", 3600)) }), "Until"},
		"until in Local":         {change(func(r *lease.Record) { r.Until = r.Until.In(time.FixedZone("UTC", 0)) }), "Until"},
		"until with monotonic":   {change(func(r *lease.Record) { r.Until = time.Now() }), "Until"},
		"until too late":         {change(func(r *lease.Record) { r.Until = last.Add(1) }), "Until"},
		"until too early":        {change(func(r *lease.Record) { r.Until = time.Time{}.Add(-1) }), "Until"},
		"leased without ID":      {change(func(r *lease.Record) { r.ID = lease.ID{} }), "ID"},
		"duration zero":          {change(func(r *lease.Record) { r.Duration = 0 }), "Duration"},
		"duration negative":      {change(func(r *lease.Record) { r.Duration = -1 }), "Duration"},
		"duration without ID":    {lease.Record{Duration: 1, Epoch: 1}, "Duration"},
		"owner without ID":       {lease.Record{Owner: "a", Epoch: 1}, "Owner"},
		"until without ID":       {lease.Record{Until: noon, Epoch: 1}, "Until"},
		"infinite with until":    {change(func(r *lease.Record) { r.Duration = lease.Infinite }), "Until"},
		"finite without until":   {change(func(r *lease.Record) { r.Until = time.Time{} }), "Until"},
		"expired, infinite":      {change(func(r *lease.Record) { r.State, r.Duration, r.Until = lease.Expired, lease.Infinite, time.Time{} }), "Duration"},
		"expired with until":     {change(func(r *lease.Record) { r.State = lease.Expired }), "Until"},
		"available with until":   {change(func(r *lease.Record) { r.State = lease.Available }), "Until"},
		"broken with until":      {change(func(r *lease.Record) { r.State = lease.Broken }), "Until"},
		"breaking without until": {change(func(r *lease.Record) { r.State, r.Until = lease.Breaking, time.Time{} }), "Until"},
		"owner with NUL":         {change(func(r *lease.Record) { r.Owner = "\x00" }), "Owner"},
		"owner too long":         {change(func(r *lease.Record) { r.Owner = strings.Repeat("x", fields.MaxLabel+1) }), "Owner"},
	} {
		err := c.r.Validate()
		var field *lease.FieldError
		if !errors.Is(err, lease.ErrCorrupt) || !errors.As(err, &field) || field.Field != "Record."+c.field {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.r.MarshalText(); !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("%s: written as text: %v", name, err)
		}
		if _, err := json.Marshal(c.r); !errors.Is(err, lease.ErrCorrupt) {
			t.Errorf("%s: written as JSON: %v", name, err)
		}
	}
}

// FuzzRecordText checks that a decoded record is valid, and is written as the same bytes. SPEC R1,
// R2, R3.
func FuzzRecordText(f *testing.F) {
	f.Add([]byte(heldText))
	f.Add([]byte("available epoch=0"))
	f.Add([]byte("breaking epoch=9 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=infinite until=2012-01-26T23:30:33.000000001Z"))
	f.Add([]byte(`broken epoch=1 id=1f812371-a41d-49e6-b123-f4b542e851c5 duration=1h0m0.5s owner="\u2028 owner=\""`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := held
		if err := r.UnmarshalText(data); err != nil {
			if !errors.Is(err, lease.ErrCorrupt) || r != held {
				t.Errorf("%q: %v, %+v", data, err, r)
			}
			return
		}
		again, err := r.MarshalText()
		if r.Validate() != nil || err != nil || string(again) != string(data) {
			t.Errorf("%q: %+v, %v\n%q, %v", data, r, r.Validate(), again, err)
		}
	})
}

// FuzzRecordJSON checks that a decoded record is valid, and is written as an object with the same
// members. No key is mistaken for another key, no key is lost, and each value is in the form that
// MarshalJSON writes. SPEC R1, R2, R3.
func FuzzRecordJSON(f *testing.F) {
	f.Add([]byte(heldJSON))
	f.Add([]byte(`{"state":"available","epoch":0}`))
	f.Add([]byte(`{"Epoch":1,"epoch":0,"state":"available"}`))
	f.Add([]byte(`{"owner":"\ud800","state":"leased","epoch":7,"id":"1f812371-a41d-49e6-b123-f4b542e851c5","duration":"infinite"}`))
	f.Add([]byte(`{"owner":"�\ud800\ud83d\ude00\uFFFD","state":"leased","epoch":7,"id":"1f812371-a41d-49e6-b123-f4b542e851c5","duration":"infinite"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := held
		if err := r.UnmarshalJSON(data); err != nil {
			if !errors.Is(err, lease.ErrCorrupt) || r != held {
				t.Errorf("%q: %v, %+v", data, err, r)
			}
			return
		}
		again, err := r.MarshalJSON()
		if r.Validate() != nil || err != nil || !utf8.Valid(data) {
			t.Fatalf("%q: %+v, %v, %v", data, r, r.Validate(), err)
		}
		var was, is map[string]json.RawMessage
		if json.Unmarshal(data, &was) != nil || json.Unmarshal(again, &is) != nil || len(was) != len(is) {
			t.Fatalf("%q: %s", data, again)
		}
		for key := range is {
			var a, b any
			if json.Unmarshal(was[key], &a) != nil || json.Unmarshal(is[key], &b) != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("%q: %s: %s is written as %s", data, key, was[key], is[key])
			}
		}
		var back lease.Record
		if err := back.UnmarshalJSON(again); err != nil || back != r {
			t.Errorf("%q: %s: %+v, %v", data, again, back, err)
		}
	})
}
