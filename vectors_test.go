package lease_test

import (
	"os"
	"testing"

	"github.com/fencedlease/lease/internal/vectors"
)

// noon is the time at which the tests try the rows of leasetest/vectors.
var noon = vectors.Noon

// ids has the lease IDs of the tests by their letters.
var ids = vectors.IDs

// rows returns the rows of a file of leasetest/vectors.
func rows(t *testing.T, file string) (found []vectors.Row) {
	t.Helper()
	all, err := vectors.Parse(os.DirFS("leasetest/vectors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Rows {
		if r.File == file {
			found = append(found, r)
		}
	}
	return found
}
