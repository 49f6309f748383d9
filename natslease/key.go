package natslease

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fencedlease/lease"
)

// escape begins a byte that a key cannot have as it is: two upper-case hex digits follow.
const escape = '='

// confirmKey is the key that a confirmation is written to: see engine.confirm. It is the key of no
// lease, because no hex digits follow its escape.
const confirmKey = "=confirm"

// encode returns the key of a name. Letters, digits, '-', '/' and '_' stand for themselves. So does
// a '.', unless it is the first or last byte or follows another one: a key may not have an empty
// part between dots. Any other byte is escaped. A leading "_kv" is escaped too, because NATS keeps
// such keys for itself.
func encode(name string) string {
	var key strings.Builder
	for i := range len(name) {
		c := name[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '/' ||
			c == '_' && (i > 0 || !strings.HasPrefix(name, "_kv")) ||
			c == '.' && i > 0 && i < len(name)-1 && name[i-1] != '.'
		if plain {
			key.WriteByte(c)
		} else {
			fmt.Fprintf(&key, "%c%02X", escape, c)
		}
	}
	return key.String()
}

// decode returns the name that encode makes the key of. It returns false for any other key.
func decode(key string) (name string, ok bool) {
	var b strings.Builder
	for rest := key; rest != ""; {
		plain, escaped, found := strings.Cut(rest, string(escape))
		b.WriteString(plain)
		if !found {
			break
		}
		if len(escaped) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(escaped[:2])
		if err != nil {
			return "", false
		}
		b.Write(c)
		rest = escaped[2:]
	}
	name = b.String()
	return name, lease.CheckName(name) == nil && encode(name) == key
}
