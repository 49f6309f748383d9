package redislease

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed script/clock.lua
var clockLua string

//go:embed script/load.lua
var loadLua string

//go:embed script/swap.lua
var swapLua string

//go:embed script/renew.lua
var renewLua string

// The first line of a script says that it writes, and that it may run when the memory is full. So a
// replica refuses all of them, which keeps every load from being stale, and leases go on in a server
// that other data has filled: a record is small, and it goes away by itself.
const header = "#!lua flags=allow-oom\n"

// What a script knows of the date: see clock.lua.
const (
	noDate     = "local dated, date\n"
	dateOfLast = "local dated, date = tonumber(ARGV[6]), ARGV[7]\n"
)

// A script is a text that a server runs, and the hash by which it knows it.
type script struct {
	source, hash string
	keys         int // that it takes
}

func newScript(keys int, parts ...string) *script {
	source := header + strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) // as EVALSHA wants it
	return &script{source, hex.EncodeToString(sum[:]), keys}
}

// callLine finds the line at which a script failed, and call the command on it.
var (
	callLine = regexp.MustCompile(`@user_script:\s?(\d+)`)
	call     = regexp.MustCompile(`redis\.call\((?:'(\w+)'|ARGV\[(\d+)\])`)
)

// locate adds to an error of the script the command that failed. The server tells the line only.
func (s *script) locate(err error, args []any) error {
	line := callLine.FindStringSubmatch(redisError(err))
	if line == nil {
		return err
	}
	n, _ := strconv.Atoi(line[1])
	lines := strings.Split(s.source, "\n")
	if n < 1 || n > len(lines) {
		return err
	}
	m := call.FindStringSubmatch(lines[n-1])
	if m == nil {
		return err
	}
	command := m[1]
	if i, _ := strconv.Atoi(m[2]); i >= 1 && i <= len(args) {
		command = fmt.Sprint(args[i-1])
	}
	return &commandError{strings.ToLower(command), err}
}

// A commandError says which command of a script failed.
type commandError struct {
	command string
	err     error
}

func (e *commandError) Error() string { return e.command + ": " + e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

var (
	loadScript  = newScript(2, noDate, clockLua, loadLua, "return show(ARGV[1], ARGV[2])")
	swapScript  = newScript(2, noDate, clockLua, loadLua, swapLua)
	renewScript = newScript(1, dateOfLast, clockLua, renewLua)
)
