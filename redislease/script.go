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

// header is the first line of every script. The flag allow-oom lets the server run the script even if other
// data fills its memory up to maxmemory. The leases then use more memory than maxmemory permits, but only a
// little, because records are small and expire. The header does not have the flag no-writes, so the server
// regards each script as a write. A replica refuses all writes, and therefore also a script that only loads a
// record. So [Store.Load] never returns stale data.
const header = "#!lua flags=allow-oom\n"

// Every script has one of these two lines after the header. A script with dateOfLast gets the day and the
// date of the last write as arguments. If the day is still the same, clock.lua uses this date and need not
// compute it. In a script with noDate, clock.lua always computes the date.
const (
	noDate     = "local dated, date\n"
	dateOfLast = "local dated, date = tonumber(ARGV[6]), ARGV[7]\n"
)

type script struct {
	source, hash string
	keys         int // the number of keys that the script takes
}

func newScript(keys int, parts ...string) *script {
	source := header + strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) // EVALSHA takes a SHA-1 hash
	return &script{source, hex.EncodeToString(sum[:]), keys}
}

// linePattern finds the number of the line at which a script failed, and commandPattern finds the Redis
// command in that line.
var (
	linePattern    = regexp.MustCompile(`@user_script:\s?(\d+)`)
	commandPattern = regexp.MustCompile(`redis\.call\((?:'(\w+)'|ARGV\[(\d+)\])`)
)

// When a Redis command in a script fails, the server reports the number of the line in the script, but not
// the command. The method locate finds the name of the command, and adds this name to the error.
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
	return fmt.Errorf("%s: %w", strings.ToLower(command), err)
}

var (
	loadScript  = newScript(2, noDate, clockLua, loadLua, "return show(ARGV[1], ARGV[2])")
	swapScript  = newScript(2, noDate, clockLua, loadLua, swapLua)
	renewScript = newScript(1, dateOfLast, clockLua, renewLua)
)
