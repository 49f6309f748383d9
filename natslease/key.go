package natslease

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/fencedlease/lease"
)

// In a key, an escaped byte consists of the character escape and two upper-case hex digits.
const escape = '='

// confirmKey is the key to which a Store writes when it confirms a read. confirmKey cannot be the key of a
// lease, because two hex digits follow every '=' in the key of a lease.
const confirmKey = "=confirm"

// The function encode returns the key for the name of a lease. Letters, digits, '-', '/' and '_' stay as they
// are, and every other byte is escaped. A dot is escaped only at the beginning, at the end, and after another
// dot, because dots divide a key into parts, and NATS allows no empty part. A leading "_kv" is also escaped,
// because NATS reserves keys with that prefix.
func encode(name string) string {
	var key strings.Builder
	for i := range len(name) {
		if isPlain(name, i) {
			key.WriteByte(name[i])
		} else {
			fmt.Fprintf(&key, "%c%02X", escape, name[i])
		}
	}
	return key.String()
}

// isPlain reports whether encode copies the byte name[i] to the key without escaping it.
func isPlain(name string, i int) bool {
	switch c := name[i]; {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '/':
		return true
	case c == '_':
		return i > 0 || !strings.HasPrefix(name, "_kv")
	case c == '.':
		return i > 0 && i < len(name)-1 && name[i-1] != '.'
	}
	return false
}

// The function decode returns the name for which encode returns the given key, or false if there is none.
func decode(key string) (name string, ok bool) {
	name, err := url.PathUnescape(strings.ReplaceAll(key, string(escape), "%"))
	return name, err == nil && lease.CheckName(name) == nil && encode(name) == key
}
