package memory

// What a version numbers: the swaps of a shard, or the absences of a Store. Since a name
// is always in the same shard, no version recurs for it.
const (
	ofSwap    = '.'
	ofAbsence = '~'
)

// term is text such as "3kt0m9qz" that tells the versions of one Store from another's.
type term [8]byte

const digits = "0123456789abcdefghijklmnopqrstuv"

// newTerm takes 40 bits of random.
func newTerm(random uint64) (t term) {
	for i := range t {
		t[i] = digits[random%32]
		random /= 32
	}
	return t
}

// version returns text such as "3kt0m9qz.1f": the term, what n numbers, and n, the digits
// of which are in no order that means anything.
func (t term) version(kind byte, n uint64) string {
	var b [22]byte // 13 digits are all of n
	copy(b[:], t[:])
	b[8] = kind
	i := 9
	for ; n > 0; i++ {
		b[i] = digits[n%32]
		n /= 32
	}
	return string(b[:i])
}
