package memory

// The two kinds of versions: numbers of the writes of a shard, and numbers of the absences of a Store. A
// name is always in the same shard, so that no version recurs for it.
const (
	ofSwap    = '.'
	ofAbsence = '~'
)

// term is text such as "3kt0m9qz" that distinguishes the versions of a Store from those of others.
type term [8]byte

const digits = "0123456789abcdefghijklmnopqrstuv"

// newTerm uses 40 bits of random.
func newTerm(random uint64) (t term) {
	for i := range t {
		t[i] = digits[random%32]
		random /= 32
	}
	return t
}

// version returns text such as "3kt0m9qz.1f": the term, the kind, and n with its lowest digit first.
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
