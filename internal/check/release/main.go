// Release has two commands. "tree" makes the tree of a release, and "api" compares the API of two
// trees.
//
//	release tree -version v0.1.0 -out FOLDER
//	release api -old FOLDER [-new FOLDER] [-changelog FILE] [-last v0.1.0 -next v0.2.0]
//
// In the tree of a release, every module requires the other modules of the repository at its own
// version and has no replace line. Programs can therefore require the modules, and "go install" can
// build their commands. The command prints the tags of the release, one for each module but those that
// hold only tests and measurements. In the documents of a release, the lines between the markers "<!--
// unreleased -->" and "<!-- /unreleased -->" become a go get or go install command. "tree" fails if
// another line of a document says that there is no release yet. On the branch, the modules keep their
// replace lines, and the documents keep their text. The script .ci/release makes a commit of the tree.
//
// "api" prints the changes of exported names in packages that are not internal. The command "api"
// fails if a program for the old tree may no longer compile. An incompatible change is allowed if
// the section "Unreleased" of the changelog has a heading "### Incompatible", or if the number of
// the next version announces the change. Before v1, a new minor version announces an incompatible
// change. From v1 on, only a new major version does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("no command: give tree or api")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	switch args[0] {
	case "tree":
		from := flags.String("from", ".", "the root of the checkout")
		version := flags.String("version", "", "the version of all modules, such as v0.1.0")
		out := flags.String("out", "", "the folder to make, for the tree")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		t, err := makeTree(*from, *out, *version)
		if err != nil {
			return err
		}
		for _, m := range t.modules {
			if m.published() {
				fmt.Println(m.tag(*version))
			}
		}
		return nil
	case "api":
		before := flags.String("old", "", "the root of the old tree")
		after := flags.String("new", ".", "the root of the new tree")
		changelog := flags.String("changelog", "", "the file that may announce an incompatible change")
		last := flags.String("last", "", "the version of the old tree")
		next := flags.String("next", "", "the version of the new tree")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		changes, err := compare(*before, *after)
		if err != nil {
			return err
		}
		incompatible := 0
		for _, c := range changes {
			fmt.Println(c)
			if !c.Compatible {
				incompatible++
			}
		}
		if incompatible == 0 || *next != "" && announced(*last, *next) {
			return nil
		}
		if *next != "" {
			return fmt.Errorf("%d changes are incompatible, and %s does not say so after %s: before v1 choose a new minor version, and then a new major one", incompatible, *next, *last)
		}
		if *changelog != "" {
			text, err := os.ReadFile(*changelog)
			if err != nil {
				return err
			}
			if listed(string(text)) {
				return nil
			}
		}
		return fmt.Errorf("%d changes are incompatible: describe them in CHANGELOG.md, under \"### Incompatible\" of the section \"Unreleased\"", incompatible)
	}
	return fmt.Errorf("no command %q: give tree or api", args[0])
}
