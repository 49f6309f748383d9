package lease

import (
	"encoding/hex"
	"strings"
	"unicode"
)

// An ID is a lease ID. An ID contains the 16 bytes of a GUID, in the order in which a GUID is printed, and
// can be converted to and from a uuid.UUID. IDs are comparable with ==. The zero ID means that no ID is
// given, and cannot be the proposed ID of a request.
type ID [16]byte

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID parses a GUID in one of the formats of the .NET Guid constructor. The digits may be in upper or
// lower case. White space around the GUID is ignored.
//
//	N  00112233445566778899aabbccddeeff
//	D  00112233-4455-6677-8899-aabbccddeeff
//	B  {00112233-4455-6677-8899-aabbccddeeff}
//	P  (00112233-4455-6677-8899-aabbccddeeff)
//	X  {0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}
//
// In format X, white space may occur anywhere, the leading zeros of a number may be left out, and the text
// must not be longer than 1024 bytes. If s is not valid, ParseID returns a [*FieldError] with the Code
// [ErrID].
func ParseID(s string) (ID, error) {
	t := strings.TrimSpace(s)
	var id ID
	ok := false
	switch {
	case len(t) == 32:
		ok = parseHex(id[:], t)
	case len(t) == 36:
		ok = parseDashed(&id, t)
	case len(t) == 38 && isEnclosed(t):
		ok = parseDashed(&id, t[1:37])
	}
	if !ok && strings.HasPrefix(t, "{") {
		ok = parseBraced(&id, t)
	}
	if !ok {
		return ID{}, &FieldError{Field: "ID", Value: quote(s), Bound: "must be a GUID in one of the formats N, D, B, P and X", Code: ErrID}
	}
	return id, nil
}

// parseHex decodes the hexadecimal digits of s into dst, and returns false if s has another character.
func parseHex(dst []byte, s string) bool {
	_, err := hex.Decode(dst, []byte(s))
	return err == nil
}

// isEnclosed reports whether s begins with a brace or parenthesis and ends with the matching one.
func isEnclosed(s string) bool {
	first, last := s[0], s[len(s)-1]
	return first == '{' && last == '}' || first == '(' && last == ')'
}

func parseDashed(id *ID, s string) bool {
	for _, i := range [...]int{8, 13, 18, 23} {
		if s[i] != '-' {
			return false
		}
	}
	return parseHex(id[:], s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:])
}

// parseBraced parses an ID in format X, for example
// {0x00112233,0x4455,0x6677,{0x88,0x99,0xaa,0xbb,0xcc,0xdd,0xee,0xff}}.
func parseBraced(id *ID, s string) bool {
	const maxLen = 1024 // bounds the work for a text that is mostly white space
	if len(s) > maxLen {
		return false
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
	head, tail, ok := strings.Cut(strings.TrimPrefix(s, "{"), ",{")
	tail, closed := strings.CutSuffix(tail, "}}")
	if !ok || !closed {
		return false
	}
	words, bytes := strings.Split(head, ","), strings.Split(tail, ",")
	if len(words) != 3 || len(bytes) != 8 {
		return false
	}
	rest := id[:]
	for i, f := range append(words, bytes...) {
		size := 1
		if i < 3 {
			size = [...]int{4, 2, 2}[i]
		}
		if len(f) < 3 || f[0] != '0' || f[1]|0x20 != 'x' || len(f)-2 > 2*size {
			return false
		}
		if !parseHex(rest[:size], strings.Repeat("0", 2*size-(len(f)-2))+f[2:]) {
			return false
		}
		rest = rest[size:]
	}
	return true
}

// String returns the ID in format D, in lower case, as the Blob service writes it in its answers.
func (id ID) String() string {
	b, _ := id.MarshalText()
	return string(b)
}

// MarshalText returns the ID in format D, in lower case. The error is always nil.
func (id ID) MarshalText() ([]byte, error) {
	b := make([]byte, 36)
	hex.Encode(b[0:], id[0:4])
	hex.Encode(b[9:], id[4:6])
	hex.Encode(b[14:], id[6:8])
	hex.Encode(b[19:], id[8:10])
	hex.Encode(b[24:], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return b, nil
}

// UnmarshalText parses text as [ParseID] does. If ParseID returns an error, *id is unchanged.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := ParseID(string(text))
	if err == nil {
		*id = v
	}
	return err
}
