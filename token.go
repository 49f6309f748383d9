package lease

import "strings"

// epochLimit bounds the Epoch of a Record, so that it also fits a signed column.
const epochLimit = 1 << 63

// A Token is a fencing token: it orders the grants of one lease. Every granted acquire, and every
// change to another ID, issues a newer token. A renewal, a break, a release and the expiry of the
// lease do not. The empty Token means that there is no token.
//
// A well-formed Token is the Epoch of a [Record] in 20 decimal digits, from 1 to 1<<63-1. So tokens
// sort in the right order as strings too. Two tokens are equal if and only if their strings are. A
// Lease of another library may have tokens of another form. Compare does not order those.
type Token string

// TokenOf returns the Token of an Epoch, and the empty Token for 0.
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

// Epoch returns the number of a well-formed Token. For the empty Token and for a malformed one it
// returns a [*FieldError] with the Code [ErrToken].
func (t Token) Epoch() (uint64, error) {
	if n, ok := t.epoch(); ok {
		return n, nil
	}
	return 0, &FieldError{Field: "Token", Value: quote(string(t)), Bound: "must be 20 decimal digits from 1 to 1<<63-1", Code: ErrToken}
}

func (t Token) epoch() (n uint64, ok bool) {
	if len(t) != 20 || t[0] != '0' { // 20 digits below 1<<63, which has 19, begin with 0
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

// Validate returns nil if the Token is well-formed, and otherwise the error of Epoch.
func (t Token) Validate() error {
	_, err := t.Epoch()
	return err
}

// Compare returns -1 if t is older than u, 0 if they are equal, and +1 if t is newer. A malformed
// Token is older than every well-formed one, so that it never outranks a grant. Two malformed tokens
// are compared as strings, which means nothing.
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
