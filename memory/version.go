package memory

// There are two kinds of versions. The version of a written record has the kind swapKind, and
// contains the number of the write. Each shard numbers its writes. All unknown names share one
// entry, the absence. When the Store forgets a record, the Store replaces this entry by a new one
// with a higher number. The version of an unknown name has the kind absenceKind, and contains the
// number of the entry. A name always belongs to the same shard, and a shard never uses a number
// twice, so a name never gets the same version twice.
const (
	swapKind    = '.'
	absenceKind = '~'
)

// A storeID is a random text such as "3kt0m9qz". Each Store makes one storeID. Every version that a
// Store makes begins with the storeID of the Store, so versions of different Stores differ.
type storeID [8]byte

const digits = "0123456789abcdefghijklmnopqrstuv"

// newStoreID makes a storeID from a random number. newStoreID uses the lowest 40 bits of the random
// number.
func newStoreID(random uint64) (id storeID) {
	for i := range id {
		id[i] = digits[random%32]
		random /= 32
	}
	return id
}

// version returns a text such as "3kt0m9qz.1f". The version consists of the storeID, the kind, and
// the number n. The number is in base 32, with the lowest digit first.
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
