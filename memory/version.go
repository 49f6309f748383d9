package memory

// What a version numbers: the swaps of a shard, or the absences of a Store. Since a name
// is always in the same shard, no version recurs for it.
const (
	ofSwap    = '.'
	ofAbsence = '~'
)

// version returns text such as "3kt0m9qz.1f": the term, what n numbers, and n.
func version(term uint64, kind byte, n uint64) string {
	const digits = "0123456789abcdefghijklmnopqrstuv"
	var b [22]byte // 8 digits are 40 bits of the term, 13 are all of n
	i := len(b)
	for {
		i--
		b[i] = digits[n%32]
		if n /= 32; n == 0 {
			break
		}
	}
	i--
	b[i] = kind
	for range 8 {
		i--
		b[i] = digits[term%32]
		term /= 32
	}
	return string(b[i:])
}
