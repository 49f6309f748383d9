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

// header is the first line of every script. The line declares that the script writes, and that it
// may run when the memory is full. A replica refuses a script that writes, so no load returns stale
// data. Leases still work on a server that is full of other data. Writing a record to a full server
// does little harm, because the record is small and expires.
const header = "#!lua flags=allow-oom\n"

// Every script has one of these lines after the header. With dateOfLast, the arguments of the
// script contain the date of the last commit, so that clock.lua need not compute the date again.
const (
	noDate     = "local dated, date\n"
	dateOfLast = "local dated, date = tonumber(ARGV[6]), ARGV[7]\n"
)

// A script is the text of a Lua script, and the hash by which a server identifies the script.
type script struct {
	source, hash string
	keys         int // the number of keys that it takes
}

func newScript(keys int, parts ...string) *script {
	source := header + strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) // EVALSHA takes a SHA-1 hash
	return &script{source, hex.EncodeToString(sum[:]), keys}
}

// linePattern matches the number of the line at which a script failed. commandPattern matches the
// command on that line.
var (
	linePattern    = regexp.MustCompile(`@user_script:\s?(\d+)`)
	commandPattern = regexp.MustCompile(`redis\.call\((?:'(\w+)'|ARGV\[(\d+)\])`)
)

// locate wraps an error of the script with the name of the command that failed. The server reports
// only the line.
func (s *script) locate(err error, args []any) error {
	line := linePattern.FindStringSubmatch(redisError(err))
	if line == nil {
		return err
	}
	n, _ := strconv.Atoi(line[1])
	lines := strings.Split(s.source, "\n")
	if n < 1 || n > len(lines) {
		return err
	}
	m := commandPattern.FindStringSubmatch(lines[n-1])
	if m == nil {
		return err
	}
	command := m[1]
	if i, _ := strconv.Atoi(m[2]); i >= 1 && i <= len(args) {
		command = fmt.Sprint(args[i-1])
	}
	return &commandError{strings.ToLower(command), err}
}

// A commandError reports which command of a script failed.
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
