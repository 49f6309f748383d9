package blobtest

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
)

// A spellingParser reads the bytes of a connection to find out how the client spells the names of metadata,
// because net/http does not keep the case of header names. The documentation says: "Metadata names preserve
// the case with which they were created, but are case-insensitive when set or read."
//
// The parser reads the head of a request, and then ignores all bytes until the request is answered. The
// ignored bytes are the body of the request, or further requests that the client has pipelined. The parser
// does not see the names of metadata in a pipelined request, so the server stores these names in lower case.
type spellingParser struct {
	mu      sync.Mutex
	parsing bool              // the next bytes belong to the head of a request, or come before a head
	left    int               // how many bytes the head may still have; 0 before the head begins
	line    []byte            // the relevant part of an unfinished line
	names   map[string]string // the names as the client spelled them; the keys are in lower case
}

const (
	maxHead = 64 << 10
	maxEnd  = len(" HTTP/1.1\r") // the end of the first line of a head
)

// read parses the next bytes that the client sent.
func (s *spellingParser) read(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.parsing {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		s.keepPart(line)
		if !found {
			return
		}
		s.readLine(bytes.TrimSuffix(s.line, []byte("\r")))
		s.line = s.line[:0]
		p = rest
	}
}

// The method keepPart stores a part of a line. In the head of a request, it stores at most maxHead bytes.
// Until the head begins, the method stores only the last maxEnd bytes of each line. These bytes show whether
// the line is the first line of the head. A line that comes before the head can be very long, because it can
// contain a part of the body of an earlier request.
func (s *spellingParser) keepPart(part []byte) {
	if s.left > 0 {
		s.line = append(s.line, part[:min(len(part), s.left-len(s.line))]...)
		return
	}
	s.line = append(s.line, part[max(0, len(part)-maxEnd):]...)
	s.line = append(s.line[:0], s.line[max(0, len(s.line)-maxEnd):]...)
}

func (s *spellingParser) readLine(line []byte) {
	if s.left == 0 {
		if bytes.HasSuffix(line, []byte(" HTTP/1.1")) || bytes.HasSuffix(line, []byte(" HTTP/1.0")) {
			s.left = maxHead
		}
		return
	}
	if s.left -= len(line); len(line) == 0 || s.left <= 0 {
		s.parsing, s.left = false, 0
		return
	}
	name, _, _ := strings.Cut(string(line), ":")
	if n := len(metadataPrefix); len(name) > n && strings.EqualFold(name[:n], metadataPrefix) {
		s.names[strings.ToLower(name[n:])] = name[n:]
	}
}

// beginAnswer makes the parser look for the head of the next request in everything that it reads from now on.
// It must be called before each write of an answer.
func (s *spellingParser) beginAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parsing, s.left, s.line = true, 0, s.line[:0]
	clear(s.names)
}

// The function spellingOf returns a metadata name as the client spelled it in a request. The parameter name
// contains the name in lower case, and ctx is the context of the request.
func spellingOf(ctx context.Context, name string) string {
	c, ok := ctx.Value(reasonKey{}).(*reasonConn)
	if !ok {
		return name
	}
	c.spelling.mu.Lock()
	defer c.spelling.mu.Unlock()
	if s, ok := c.spelling.names[name]; ok {
		return s
	}
	return name
}

// The function setHeaderCase changes header names in an answer to the case that the service uses, because
// scripts search the output of curl for them. If a test calls the handler without a server, the function
// changes the names to their canonical form, so that [http.Header.Get] finds them. In a server that does not
// use Serve, the function changes nothing.
func setHeaderCase(ctx context.Context, header http.Header) {
	_, ours := ctx.Value(reasonKey{}).(*reasonConn)
	alone := ctx.Value(http.ServerContextKey) == nil
	for name, values := range header {
		s := name
		switch {
		case alone:
			s = http.CanonicalHeaderKey(name)
		case !ours:
		case strings.HasPrefix(name, "X-Ms-"):
			s = strings.ToLower(name)
		case name == "Etag":
			s = "ETag"
		case name == "Content-Md5":
			s = "Content-MD5"
		case name == "Www-Authenticate":
			s = "WWW-Authenticate"
		}
		if s != name {
			delete(header, name)
			header[s] = values
		}
	}
}
