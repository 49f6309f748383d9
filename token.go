package lease

import "strings"

// The Epoch of a Record must be below epochLimit, because it must fit in a signed 64-bit column of a
// database.
const epochLimit = 1 << 63

// A Token is a fencing token. Tokens order the grants of one lease. The authority issues a newer token when
// it grants an acquire or changes the lease ID, but not for a renewal, a break, a release or an expiry. The
// empty Token means that there is no token.
//
// A well-formed Token is the Epoch of a [Record], from 1 to 1<<63-1, written with 20 decimal digits. Sorted
// as strings, an older token comes before a newer one. Two tokens are equal if and only if their strings are
// equal. A Lease of another library may have tokens of another form, which Compare cannot order.
type Token string

// TokenOf returns the Token of the given Epoch, and the empty Token for 0. If epoch is 1<<63 or more, the
// result is not well-formed.
func TokenOf(epoch uint64) Token {
	if epoch == 0 {
		return ""
	}
	var b [20]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + epoch%10)
		epoch /= 10
	}
	return Token(b[:])
}

// Epoch returns the number of a well-formed Token. If t is empty or malformed, Epoch returns a [*FieldError]
// with the Code [ErrToken].
func (t Token) Epoch() (uint64, error) {
	if n, ok := t.epoch(); ok {
		return n, nil
	}
	return 0, &FieldError{Field: "Token", Value: quote(string(t)), Bound: "must be 20 decimal digits from 1 to 1<<63-1", Code: ErrToken}
}

func (t Token) epoch() (n uint64, ok bool) {
	if len(t) != 20 || t[0] != '0' { // the numbers below 1<<63 have at most 19 digits
		return 0, false
	}
	for i := range len(t) {
		digit := uint64(t[i] - '0')
		if digit > 9 {
			return 0, false
		}
		n = 10*n + digit
	}
	return n, n > 0 && n < epochLimit
}

// Validate returns nil if the Token is well-formed, and otherwise the error of [Token.Epoch].
func (t Token) Validate() error {
	_, err := t.Epoch()
	return err
}

// Compare returns -1 if t is older than u, 0 if t and u are equal, and +1 if t is newer than u. A Token
// that is not well-formed, such as the empty Token, counts as older than every well-formed Token. If
// neither is well-formed, Compare compares them as strings, and the result says nothing about their age.
func (t Token) Compare(u Token) int {
	_, a := t.epoch()
	_, b := u.epoch()
	if a != b {
		if a {
			return 1
		}
		return -1
	}
	return strings.Compare(string(t), string(u))
}
