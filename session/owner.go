package session

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
)

// maxHost is the longest part of a host name in a default owner. It is the longest host name of
// Linux, and the longest name of a Pod that its host name can show.
const maxHost = 63

// defaultOwner returns the host name, the process ID and the first 16 digits of id. Two containers
// can have the same host name and process ID, so id must be random. The host name keeps only letters,
// digits, "-" and "." of ASCII, because some engines send the owner in an HTTP header.
func defaultOwner(id lease.ID) string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return ownerOf(host, os.Getpid(), id)
}

func ownerOf(host string, pid int, id lease.ID) string {
	host = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '-'
	}, host)
	if host == "" {
		host = "unknown"
	}
	host = host[:min(len(host), maxHost)]
	return host + "_" + strconv.Itoa(pid) + "_" + hex.EncodeToString(id[:8])
}
