package s3lease

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// Some services store each object in a file, and a file name has at most 255 bytes.
const mostKey, keptOfLong = 200, 120

// checkKey is the key of the object with which a Store checks the service. No lease has this key.
const checkKey = "=check"

// keyOf returns the key of a name, without the prefix of the Store. Every byte except letters, digits, '-',
// '_' and '.' becomes '=' and two hex digits. This includes slashes, because a service that stores objects in
// files cannot have both jobs and jobs/nightly. A '.' at the beginning is written in the same way. A long key
// is cut, and a hash of the name is added.
func keyOf(name string) string {
	key := escape(name)
	if len(key) <= mostKey {
		return key
	}
	hash := sha256.Sum256([]byte(name))
	return key[:keptOfLong] + "=_" + hex.EncodeToString(hash[:])
}

// If a name begins with the parameter prefix, the key of the name begins with the result of keyPrefix. The
// keys of other names can begin with the same result, too.
func keyPrefix(prefix string) string {
	key := escape(prefix)
	return key[:min(len(key), keptOfLong)]
}

// nameOf returns the name of the lease with the given key. It returns false if the key does not contain the
// whole name, or if it is not the key of a lease.
func nameOf(key string) (string, bool) {
	name, err := url.PathUnescape(strings.ReplaceAll(key, "=", "%"))
	return name, err == nil && name != "" && keyOf(name) == key
}

func escape(name string) string {
	const digits = "0123456789ABCDEF"
	var key strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			key.WriteByte(c)
		default:
			key.Write([]byte{'=', digits[c>>4], digits[c&15]})
		}
	}
	return key.String()
}
