//go:build linux

package dirlease

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// Guard calls f, which may write the data of a resource, unless a newer token than tok has been seen. While f
// runs, no other process can write the data.
func (s *Store) Guard(ctx context.Context, resource string, tok lease.Token, f func() error) error {
	path := filepath.Join(s.dir, url.PathEscape(resource)+".mark")
	advance := func(*os.File) error { return fencing.Advance(ctx, mark(path), tok) }
	if err := flock(ctx, path+".lock", advance); err != nil { // so that older tokens that wait for the data are rejected
		return err
	}
	return flock(ctx, path+".data", func(*os.File) error {
		if err := flock(ctx, path+".lock", advance); err != nil {
			return err
		}
		return f()
	})
}

// A mark is a file that contains the newest token of a resource. The caller of Advance must lock the mark.
type mark string

func (m mark) Advance(_ context.Context, tok lease.Token) (lease.Token, error) {
	seen, err := os.ReadFile(string(m))
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(seen) < string(tok) {
		return tok, write(string(m), string(tok))
	}
	return lease.Token(seen), err
}
