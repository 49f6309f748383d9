package lease_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/fencedlease/lease"
)

// SPEC R4.
func TestParseID(t *testing.T) {
	want := lease.ID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	for name, s := range map[string]string{
		"N":                       "00112233445566778899aabbccddeeff",
		"D":                       "00112233-4455-6677-8899-aabbccddeeff",
		"B":                       "{00112233-4455-6677-8899-aabbccddeeff}",
		"P":                       "(00112233-4455-6677-8899-aabbccddeeff)",
		"X":                       "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"upper case":              "00112233-4455-6677-8899-AABBCCDDEEFF",
		"X, upper case":           "{0X00112233,0X4455,0X6677,{0X88,0X99,0XAA,0XBB,0XCC,0XDD,0XEE,0XFF}}",
		"X, no leading zeros":     "{0x112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, white space":          "{ 0x00112233, 0x4455, 0x6677,\t{0x88, 0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff }\n}",
		"white space around":      "  00112233-4455-6677-8899-aabbccddeeff\r\n",
		"white space around X":    " {0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}} ",
		"X, as long as it may be": "{" + strings.Repeat(" ", 1024-68) + "0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
	} {
		if got, err := lease.ParseID(s); got != want || err != nil {
			t.Errorf("%s: %q: %v, %v", name, s, got, err)
		}
		var id lease.ID
		if err := id.UnmarshalText([]byte(s)); id != want || err != nil {
			t.Errorf("%s: UnmarshalText: %v, %v", name, id, err)
		}
	}
	short := lease.ID{3: 1, 5: 2, 7: 3, 8: 4, 9: 5, 10: 6, 11: 7, 12: 8, 13: 9, 14: 10, 15: 0}
	if got, err := lease.ParseID("{0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa,0x0}}"); got != short || err != nil {
		t.Errorf("X of one digit each: %v, %v", got, err)
	}
	if got := want.String(); got != "00112233-4455-6677-8899-aabbccddeeff" {
		t.Errorf("String: %q", got)
	}
	if uuid.UUID(want).String() != want.String() || lease.ID(uuid.MustParse(want.String())) != want {
		t.Error("an ID does not convert to a UUID as it stands")
	}
	if (lease.ID{}).IsZero() == want.IsZero() {
		t.Error("IsZero")
	}
}

// SPEC R4: ParseID refuses a text in any other format, with a message that contains the text.
func TestParseIDRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"empty":                    "",
		"white space":              "   ",
		"not hexadecimal":          "0011223344556677 899aabbccddeeff0",
		"one digit less":           "00112233445566778899aabbccddeef",
		"one digit more":           "00112233445566778899aabbccddeeff0",
		"URN":                      "urn:uuid:00112233-4455-6677-8899-aabbccddeeff",
		"brackets":                 "[00112233-4455-6677-8899-aabbccddeeff]",
		"mixed braces":             "{00112233-4455-6677-8899-aabbccddeeff)",
		"mixed parentheses":        "(00112233-4455-6677-8899-aabbccddeeff}",
		"no opening brace":         "-00112233-4455-6677-8899-aabbccddeeff}",
		"N in braces":              "{00112233445566778899aabbccddeeff}",
		"dash 1 is wrong":          "00112233_4455-6677-8899-aabbccddeeff",
		"dash 2 is wrong":          "00112233-4455_6677-8899-aabbccddeeff",
		"dash 3 is wrong":          "00112233-4455-6677_8899-aabbccddeeff",
		"dash 4 is wrong":          "00112233-4455-6677-8899_aabbccddeeff",
		"D, not hexadecimal":       "00112233-4455-6677-8899-aabbccddeefg",
		"X without 0x":             "{00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X with 1x":                "{1x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X with 0y":                "{0y00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, no digits":             "{0x,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, word too long":         "{0x000112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, byte too long":         "{0x00112233,0x4455,0x6677,{0x088,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, second word too long":  "{0x00112233,0x04455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, not hexadecimal":       "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xfg}}",
		"X, seven bytes":           "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee}}",
		"X, nine bytes":            "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff,0x00}}",
		"X, two words":             "{0x00112233,0x4455,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, four words":            "{0x00112233,0x4455,0x6677,0x8899,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, no inner braces":       "{0x00112233,0x4455,0x6677,0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}",
		"X, not closed":            "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}",
		"X, more behind":           "{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}},",
		"X, opened twice":          "{{0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"X, too long":              "{" + strings.Repeat(" ", 1024-68+1) + "0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}",
		"D of full-width digits":   "００112233-4455-6677-8899-aabbccddee",
		"NUL behind":               "00112233-4455-6677-8899-aabbccddeeff\x00",
		"two of them":              "00112233-4455-6677-8899-aabbccddeeff,00112233-4455-6677-8899-aabbccddeeff",
		"very long":                strings.Repeat("0", 1<<20),
		"X of very many fields":    "{" + strings.Repeat("0x0,", 200) + "{0x0}}",
		"a single opening brace":   "{",
		"only braces of the right": strings.Repeat("}", 38),
	} {
		got, err := lease.ParseID(s)
		var field *lease.FieldError
		if got != (lease.ID{}) || !errors.Is(err, lease.ErrID) || !errors.As(err, &field) || field.Field != "ID" {
			t.Errorf("%s: %q: %v, %v", name, s, got, err)
		} else if len(err.Error()) > 500 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Error()))
		}
		id := lease.ID{1}
		if err := id.UnmarshalText([]byte(s)); err == nil || id != (lease.ID{1}) {
			t.Errorf("%s: UnmarshalText: %v, %v", name, id, err)
		}
	}
}

// formats writes an ID in all five formats.
func formats(id lease.ID) []string {
	d := id.String()
	x := fmt.Sprintf("{0x%x,0x%x,0x%x,{", id[0:4], id[4:6], id[6:8])
	for i, b := range id[8:] {
		if i > 0 {
			x += ","
		}
		x += fmt.Sprintf("0x%x", b)
	}
	return []string{strings.ReplaceAll(d, "-", ""), d, "{" + d + "}", "(" + d + ")", x + "}}"}
}

// An ID that is written in any format and parsed stays the same. If package uuid knows a format, it parses
// the same value. SPEC R3, R4.
func FuzzParseID(f *testing.F) {
	for _, s := range formats(ids["B"]) {
		f.Add(s)
	}
	f.Add(" {0x1,0x2,0x3,{0x4,0x5,0x6,0x7,0x8,0x9,0xa,0x0}} ")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := lease.ParseID(s)
		if len(s) == 32 || len(s) == 36 {
			oracle, wrong := uuid.Parse(s)
			if strings.TrimSpace(s) == s && (err == nil) != (wrong == nil) {
				t.Errorf("%q: %v; uuid: %v", s, err, wrong)
			}
			if err == nil && wrong == nil && lease.ID(oracle) != id {
				t.Errorf("%q: %v, %v; uuid: %v, %v", s, id, err, oracle, wrong)
			}
		}
		if err != nil {
			if !errors.Is(err, lease.ErrID) || id != (lease.ID{}) {
				t.Errorf("%q: %v, %v", s, id, err)
			}
			return
		}
		for _, text := range formats(id) {
			for _, text := range []string{text, strings.ToUpper(text), "\t" + text + " "} {
				if again, err := lease.ParseID(text); again != id || err != nil {
					t.Errorf("%q, written as %q: %v, %v", s, text, again, err)
				}
			}
		}
		if oracle, err := uuid.Parse(formats(id)[2]); err != nil || lease.ID(oracle) != id {
			t.Errorf("%v: uuid: %v, %v", id, oracle, err)
		}
	})
}
