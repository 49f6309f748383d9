package s3lease

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// A file name has at most 255 bytes, and some services keep each object in a file.
const mostKey, keptOfLong = 200, 120

// checkKey is the key of the object with which a Store checks the service. No name has it.
const checkKey = "=check"

// keyOf returns the key of a name, without the prefix of the store. Letters, digits, '-', '_' and '.' stay as they
// are, and every other byte becomes '=' and two hex digits: a slash, too, because a service that stores objects as
// files cannot have both jobs and jobs/nightly. A long key is cut, and ends with a hash of the name instead.
func keyOf(name string) string {
	key := escape(name)
	if len(key) <= mostKey {
		return key
	}
	hash := sha256.Sum256([]byte(name))
	return key[:keptOfLong] + "=_" + hex.EncodeToString(hash[:])
}

// keyPrefix returns a prefix of the keys of all names that begin with the given prefix. The keys of other names
// can have it too.
func keyPrefix(prefix string) string {
	key := escape(prefix)
	return key[:min(len(key), keptOfLong)]
}

// nameOf returns the name of the lease with the given key. It returns false if the name was too long to
// be in the key, or if the key belongs to no lease.
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
