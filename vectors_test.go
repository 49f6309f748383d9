package lease_test

import (
	"os"
	"testing"

	"github.com/fencedlease/lease/internal/vectors"
)

// noon is the moment in which the rows of leasetest/vectors are tried.
var noon = vectors.Noon

// ids are the lease IDs of the tests, by letters.
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
