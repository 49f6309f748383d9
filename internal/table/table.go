// Package table keeps values by number.
package table

// A Table numbers the values that are put into it, starting from 1. The zero Table is empty. A
// Table that has become empty uses no memory for values. A Table must not be used by several
// goroutines at once.
type Table[T any] struct {
	last   uint64 // the last number that was used
	values map[uint64]T
}

// Put adds a value and returns its number.
func (t *Table[T]) Put(value T) (number uint64) {
	if t.values == nil {
		t.values = make(map[uint64]T)
	}
	t.last++
	t.values[t.last] = value
	return t.last
}

// Get returns the value with the given number. If no value has the number, Get returns false.
func (t *Table[T]) Get(number uint64) (value T, ok bool) {
	value, ok = t.values[number]
	return value, ok
}

// Take removes the value with the given number and returns it. If no value has the number, Take
// returns the zero T.
func (t *Table[T]) Take(number uint64) T {
	value := t.values[number]
	delete(t.values, number)
	if len(t.values) == 0 {
		t.values = nil
	}
	return value
}
