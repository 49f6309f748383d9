package kubelease

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
)

// An object name that begins with escapedPrefix is the escaped form of a lease name. A lease name that
// already begins with escapedPrefix is also escaped, so that it does not equal the escaped form of another
// name.
const escapedPrefix = "x--"

const maxObjectName = 253

// objectName returns the name of the object for a lease. If Kubernetes allows it, the object has the name of
// the lease, and otherwise the escaped form of that name. The escaped form has the prefix "x--", and every
// byte except a-z and 0-9 is written as a hyphen and two hexadecimal digits. Two different leases never share
// an object.
func objectName(name string) (string, error) {
	if err := lease.CheckName(name); err != nil {
		return "", err
	}
	object := name
	if !isObjectName(name) || strings.HasPrefix(name, escapedPrefix) {
		var b strings.Builder
		b.WriteString(escapedPrefix)
		for i := range len(name) {
			if c := name[i]; isAlphanumeric(c) {
				b.WriteByte(c)
			} else {
				b.WriteByte('-')
				b.WriteString(hex.EncodeToString([]byte{c}))
			}
		}
		object = b.String()
	}
	if len(object) > maxObjectName {
		return "", &lease.FieldError{Field: "Name", Value: strconv.Quote(name), Code: lease.ErrName,
			Bound: fmt.Sprintf("must have an object name of at most %d bytes, but its object name has %d; other bytes than a-z, 0-9, - and . make it longer", maxObjectName, len(object))}
	}
	return object, nil
}

// leaseName is the inverse of objectName: it returns the name of the lease whose object has the given name.
// If no lease can have an object with this name, leaseName returns false.
func leaseName(object string) (string, bool) {
	name := object
	if text, ok := strings.CutPrefix(object, escapedPrefix); ok {
		var b strings.Builder
		for len(text) > 0 {
			plain, rest, more := strings.Cut(text, "-")
			b.WriteString(plain)
			if !more {
				break
			}
			c, err := hex.DecodeString(rest[:min(2, len(rest))])
			if err != nil || len(c) != 1 {
				return "", false
			}
			b.Write(c)
			text = rest[2:]
		}
		name = b.String()
	}
	again, err := objectName(name)
	return name, err == nil && again == object
}

// isObjectName reports whether the name is a lower-case RFC 1123 subdomain of any length, as Kubernetes
// demands for the name of an object.
func isObjectName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; !isAlphanumeric(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

func isAlphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
