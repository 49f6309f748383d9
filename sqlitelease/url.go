package sqlitelease

import (
	"context"

	"github.com/fencedlease/lease/open"
)

// A program that imports this package can open a URL file:PATH with [open.Store].
func init() {
	open.Register("file", "file:PATH", func(_ context.Context, url string) (open.Leases, error) {
		path, err := open.Path(url)
		if err != nil {
			return nil, err
		}
		return Open(path, nil)
	})
}
