package leasetest

import (
	"embed"
	"io/fs"
)

//go:embed vectors
var vectors embed.FS

// Vectors are the facts of the machine as text files, for implementations in any language.
// The format is described in its README.md.
func Vectors() fs.FS {
	sub, err := fs.Sub(vectors, "vectors")
	if err != nil {
		panic(err) // the directory is embedded
	}
	return sub
}
