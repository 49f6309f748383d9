// Package table keeps values by number.
package table

import (
	"cmp"
	"slices"
)

// A Table numbers the values that are put into it, starting from 1. The zero Table is empty. A
// Table that has become empty uses no memory for values. A Table must not be used by several
// goroutines at once.
type Table[T any] struct {
	last    uint64     // the last number that was used
	entries []entry[T] // in the order of their numbers; a slice, because a Table has few values at a time
}

type entry[T any] struct {
	number uint64
	value  T
}

// Put adds a value and returns its number.
func (t *Table[T]) Put(value T) (number uint64) {
	t.last++
	t.entries = append(t.entries, entry[T]{t.last, value})
	return t.last
}

// Get returns the value with the given number. If no value has the number, Get returns false.
func (t *Table[T]) Get(number uint64) (value T, ok bool) {
	if i, ok := t.find(number); ok {
		return t.entries[i].value, true
	}
	return value, false
}

// Take removes the value with the given number and returns it. If no value has the number, Take
// returns the zero T.
func (t *Table[T]) Take(number uint64) (value T) {
	i, ok := t.find(number)
	if !ok {
		return value
	}
	value = t.entries[i].value
	if t.entries = slices.Delete(t.entries, i, i+1); len(t.entries) == 0 {
		t.entries = nil
	}
	return value
}

func (t *Table[T]) find(number uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(t.entries, number, func(e entry[T], n uint64) int { return cmp.Compare(e.number, n) })
}
