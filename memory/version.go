package memory

// ofSwap marks the version of a write, and ofAbsence marks the version of an absence. The writes of
// each shard are numbered, and so are the absences of a Store. A name always has the same shard, so
// it never gets the same version twice.
const (
	ofSwap    = '.'
	ofAbsence = '~'
)

// A term is a random text such as "3kt0m9qz". It is a part of every version of a Store, and
// distinguishes these versions from those of other Stores.
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

// version returns a text such as "3kt0m9qz.1f". It consists of the term, the kind and the number n in
// base 32, with the lowest digit first.
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
