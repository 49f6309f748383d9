package leasetest_test

import (
	"flag"
	"io"
	"os"
	"testing"
)

// passes runs a test once, as go test does, and reports whether it passed. It writes the output of a failed
// test to os.Stderr, and discards that of another, so that it is not part of the output of the example.
func passes(test func(t *testing.T)) bool {
	said, err := os.CreateTemp("", "said")
	if err != nil {
		return false
	}
	defer os.Remove(said.Name())
	defer said.Close()
	count, out := flag.Lookup("test.count").Value, os.Stdout
	times := count.String()
	os.Stdout, _ = said, count.Set("1")
	all := func(_, _ string) (bool, error) { return true, nil }
	ok := testing.RunTests(all, []testing.InternalTest{{Name: "TestMine", F: test}})
	os.Stdout, _ = out, count.Set(times)
	if _, err := said.Seek(0, io.SeekStart); err == nil && !ok {
		_, _ = io.Copy(os.Stderr, said)
	}
	return ok
}
