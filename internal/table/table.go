// Package table keeps values by number.
package table

// A Table gives every value that is put into it a number of its own, from 1. The zero Table is
// empty; a Table that has become empty keeps no memory for values. It must not be used by several
// goroutines at once.
type Table[T any] struct {
	last   uint64 // number
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

// Get returns the value with a number, and whether there is one.
func (t *Table[T]) Get(number uint64) (value T, ok bool) {
	value, ok = t.values[number]
	return value, ok
}

// Take removes the value with a number and returns it. Without one it returns the zero T.
func (t *Table[T]) Take(number uint64) T {
	value := t.values[number]
	delete(t.values, number)
	if len(t.values) == 0 {
		t.values = nil
	}
	return value
}
