// Release turns a copy of the checkout into the tree of a release:
//
//	release -version v0.1.0 -tree FOLDER -proxy FOLDER
//
// In that tree, every module requires the other modules of the repository at its own version and has no
// replace line, so that programs can require the modules, and "go install" can build their commands. In its
// documents, the lines between the markers "<!-- unreleased -->" and "<!-- /unreleased -->" become a go get
// or go install command. Release fails if another line of a document says that there is no release yet. It
// writes the modules into the folder of -proxy in the layout of a module proxy, and prints the tags of the
// release: one for each module but those that hold only tests and measurements.
//
// On the branch, the modules keep their replace lines, and the documents keep their text. The script
// .ci/release makes a commit of the tree.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	version := flag.String("version", "", "the version of all modules, such as v0.1.0")
	folder := flag.String("tree", "", "a copy of the checkout, to change")
	proxy := flag.String("proxy", "", "the folder for a module proxy")
	flag.Parse()
	t, err := release(*folder, *proxy, *version)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, m := range t.published() {
		fmt.Println(m.tag(*version))
	}
}
