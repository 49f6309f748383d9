package redislease

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
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

// A script is a text that a server runs, and the hash by which it knows it.
type script struct{ source, hash string }

func newScript(parts ...string) *script {
	source := header + strings.Join(parts, "")
	sum := sha1.Sum([]byte(source)) // as EVALSHA wants it
	return &script{source, hex.EncodeToString(sum[:])}
}

var (
	loadScript  = newScript(clockLua, loadLua, "return show(ARGV[1], ARGV[2])")
	swapScript  = newScript(clockLua, loadLua, swapLua)
	renewScript = newScript(clockLua, renewLua)
)
