package memory

// The version of a written record contains ofSwap and the number of the write in its shard. The
// version of an absence, which stands for all unknown names, contains ofAbsence and the number of the
// absence. A name always belongs to the same shard, so it never gets the same version twice.
const (
	ofSwap    = '.'
	ofAbsence = '~'
)

// A term is a random text such as "3kt0m9qz". Each Store has a term and puts it into all its
// versions, so that they differ from the versions of other Stores.
type term [8]byte

const digits = "0123456789abcdefghijklmnopqrstuv"

// newTerm returns a term that is made from 40 bits of random.
func newTerm(random uint64) (t term) {
	for i := range t {
		t[i] = digits[random%32]
		random /= 32
	}
	return t
}

// version returns a text such as "3kt0m9qz.1f". The text has the term, then the kind, then the number
// n in base 32 with the lowest digit first.
func (t term) version(kind byte, n uint64) string {
	var b [22]byte // 8 for the term, 1 for the kind, 13 for n
	copy(b[:], t[:])
	b[8] = kind
	i := 9
	for ; n > 0; i++ {
		b[i] = digits[n%32]
		n /= 32
	}
	return string(b[:i])
}
