package session

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"github.com/fencedlease/lease"
)

// The constant maxHost limits the host name in a default owner to 63 bytes. A label of a DNS name has at most
// 63 bytes, and Kubernetes cuts the host name of a Pod to this length.
const maxHost = 63

// defaultOwner returns the host name, the process ID and the first 16 digits of id, which must be random
// because two containers can have the same host name and process ID. Some engines send the owner in an HTTP
// header, so any character of the host name except ASCII letters, digits, "-" and "." becomes "-".
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
