package azlease

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/fencedlease/lease"
)

// CheckName returns nil if a lease in a container can have the given name. Otherwise CheckName returns a
// [*lease.FieldError] with the Code [lease.ErrName].
//
// The name of a lease is also the name of its blob, so CheckName accepts only names that the service and all
// its clients leave unchanged. Besides the rules of [lease.CheckName], these rules apply:
//
//   - The name has at most 1024 UTF-16 units, and at most 254 segments between slashes.
//   - No segment is empty or ends with a dot.
//   - The name does not begin or end with white space.
//   - The name has no backslash, no control character and no noncharacter of Unicode.
//   - The name is not [FloorBlob].
func CheckName(name string) error {
	if err := lease.CheckName(name); err != nil {
		return err
	}
	if bound := violatedRule(name); bound != "" {
		text := name
		if len(text) > 80 {
			text = text[:80] + "..."
		}
		return &lease.FieldError{Field: "Name", Value: strconv.Quote(text), Bound: bound, Code: lease.ErrName}
	}
	return nil
}

// violatedRule returns the naming rule that the given name violates, or "" if the name is valid.
func violatedRule(name string) string {
	segments := strings.Split(name, "/")
	switch {
	case name == FloorBlob:
		return "must not be the blob that keeps the floor of the tokens"
	case len(utf16.Encode([]rune(name))) > 1024:
		return "must have at most 1024 characters, as the name of a blob"
	case len(segments) > 254:
		return "must have at most 254 segments between slashes, as the name of a blob"
	case strings.TrimSpace(name) != name:
		return "must not begin or end with white space, as the name of a blob"
	case strings.ContainsFunc(name, func(r rune) bool {
		return r == '\\' || unicode.IsControl(r) || isNoncharacter(r)
	}):
		return "must have no backslash, control character or noncharacter, as the name of a blob"
	}
	for _, s := range segments {
		if s == "" || strings.HasSuffix(s, ".") {
			return "must have no segment that is empty or ends with a dot, as the name of a blob"
		}
	}
	return ""
}

// isNoncharacter reports whether r is one of the 66 noncharacters of Unicode.
func isNoncharacter(r rune) bool {
	return r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef
}
