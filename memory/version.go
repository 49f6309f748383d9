package memory

// There are two kinds of versions. Each shard counts its writes, and the version of a written record contains
// the count at the time of the write. All unknown names share one common entry (see newAbsence), and the
// version of an unknown name contains the number of this entry. When the Store deletes a record, it replaces
// the common entry with a new one, which has a higher number. The versions of a name never repeat, because a
// name always belongs to the same shard, and because neither the count of writes nor the number of the common
// entry ever decreases.
const (
	swapKind    = '.'
	absenceKind = '~'
)

// A storeID is a random text such as "3kt0m9qz". Every version begins with the storeID of its Store, so
// that versions of different Stores differ.
type storeID [8]byte

const digits = "0123456789abcdefghijklmnopqrstuv"

// newStoreID makes a storeID from the lowest 40 bits of a random number.
func newStoreID(random uint64) (id storeID) {
	for i := range id {
		id[i] = digits[random%32]
		random /= 32
	}
	return id
}

// The method version returns a text such as "3kt0m9qz.1f", which consists of the storeID, the kind, and the
// number n. The number is in base 32, with the lowest digit first.
func (id storeID) version(kind byte, n uint64) string {
	var b [22]byte // 8 for the storeID, 1 for the kind, 13 for n
	copy(b[:], id[:])
	b[8] = kind
	i := 9
	for ; n > 0; i++ {
		b[i] = digits[n%32]
		n /= 32
	}
	return string(b[:i])
}
