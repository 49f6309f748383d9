package table_test

import (
	"testing"

	"github.com/fencedlease/lease/internal/table"
)

// Numbers begin at 1, and Put never returns a number twice, not even after the Table was empty.
func TestTable(t *testing.T) {
	var tab table.Table[string]
	if v, ok := tab.Get(0); ok || v != "" {
		t.Errorf("an empty Table has %q", v)
	}
	a, b := tab.Put("a"), tab.Put("b")
	if a != 1 || b != 2 {
		t.Errorf("numbers %d, %d", a, b)
	}
	if v, ok := tab.Get(b); !ok || v != "b" {
		t.Errorf("Get: %q, %v", v, ok)
	}
	if v := tab.Take(a); v != "a" {
		t.Errorf("Take: %q", v)
	}
	if v, ok := tab.Get(a); ok || tab.Take(a) != "" {
		t.Errorf("%q is still there", v)
	}
	if v := tab.Take(b); v != "b" {
		t.Errorf("Take: %q", v)
	}
	if c := tab.Put("c"); c != 3 {
		t.Errorf("number %d", c)
	}
}
