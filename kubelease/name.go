package kubelease

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fencedlease/lease"
)

// An object name that begins with escapedPrefix is the escaped form of a lease name. A lease name that
// already begins with escapedPrefix is also escaped, so that it does not equal the escaped form of another
// name.
const escapedPrefix = "x--"

// objectName returns the name of the object for a lease. If Kubernetes allows it, the object has the name of
// the lease, and otherwise the escaped form of that name. The escaped form has the prefix "x--", and every
// byte except a-z and 0-9 is written as a hyphen and two hexadecimal digits. Two different leases never share
// an object.
func objectName(name string) (string, error) {
	if err := lease.CheckName(name); err != nil {
		return "", err
	}
	object := name
	if len(validation.IsDNS1123Subdomain(name)) > 0 || strings.HasPrefix(name, escapedPrefix) {
		var b strings.Builder
		b.WriteString(escapedPrefix)
		for i := range len(name) {
			if c := name[i]; isAlphanumeric(c) {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "-%02x", c)
			}
		}
		object = b.String()
	}
	if len(object) > validation.DNS1123SubdomainMaxLength {
		return "", &lease.FieldError{Field: "Name", Value: strconv.Quote(name), Code: lease.ErrName,
			Bound: fmt.Sprintf("must have an object name of at most %d bytes, but its object name has %d; other bytes than a-z, 0-9, - and . make it longer", validation.DNS1123SubdomainMaxLength, len(object))}
	}
	return object, nil
}

// leaseName is the inverse of objectName: it returns the name of the lease whose object has the given name.
// If no lease can have an object with this name, leaseName returns false.
func leaseName(object string) (string, bool) {
	name := object
	if text, ok := strings.CutPrefix(object, escapedPrefix); ok {
		var err error
		if name, err = url.PathUnescape(strings.ReplaceAll(text, "-", "%")); err != nil {
			return "", false
		}
	}
	again, err := objectName(name)
	return name, err == nil && again == object
}

func isAlphanumeric(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
