package blobtest

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
)

// "Metadata names preserve the case with which they were created, but are case-insensitive
// when set or read." net/http tells no case of a header's name, so the server's connections
// read along. A spelling is how the names of metadata are spelled in the head of the request
// that is to be answered next. What comes between that head and its answer is not looked at:
// it is a body, or a request sent ahead, whose names are told in lower case.
type spelling struct {
	mu       sync.Mutex
	answered bool              // what comes is in front of a head, or the head itself
	left     int               // bytes that the head may still have; 0: it has not begun
	line     []byte            // what has come of a line that goes on, as far as it can matter
	names    map[string]string // as spelled, by the lower case
}

const (
	maxHead = 64 << 10
	maxEnd  = len(" HTTP/1.1\r") // of the first line of a head
)

// read reads the next bytes that a client sent.
func (s *spelling) read(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.answered {
		line, rest, found := bytes.Cut(p, []byte("\n"))
		s.keep(line)
		if !found {
			return
		}
		s.readLine(bytes.TrimSuffix(s.line, []byte("\r")))
		s.line = s.line[:0]
		p = rest
	}
}

// keep keeps a part of a line: in a head no more than the head may have, and in front of one, where
// a body can come, nothing but what may be the line's end.
func (s *spelling) keep(part []byte) {
	if s.left > 0 {
		s.line = append(s.line, part[:min(len(part), s.left-len(s.line))]...)
		return
	}
	s.line = append(s.line, part[max(0, len(part)-maxEnd):]...)
	s.line = append(s.line[:0], s.line[max(0, len(s.line)-maxEnd):]...)
}

func (s *spelling) readLine(line []byte) {
	if s.left == 0 {
		if bytes.HasSuffix(line, []byte(" HTTP/1.1")) || bytes.HasSuffix(line, []byte(" HTTP/1.0")) {
			s.left = maxHead
		}
		return
	}
	if s.left -= len(line); len(line) == 0 || s.left <= 0 {
		s.answered, s.left = false, 0
		return
	}
	name, _, _ := strings.Cut(string(line), ":")
	if n := len(metadataPrefix); len(name) > n && strings.EqualFold(name[:n], metadataPrefix) {
		s.names[strings.ToLower(name[n:])] = name[n:]
	}
}

// answer is called in front of an answer, and of each of its parts: what comes after it is another
// request.
func (s *spelling) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered, s.left, s.line = true, 0, s.line[:0]
	clear(s.names)
}

// spelled returns the name of a piece of metadata, given in lower case, as the request with
// this context spells it.
func spelled(ctx context.Context, name string) string {
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

// spell spells the names of an answer's headers as the service does. To HTTP it is all one,
// but not to a script that searches what curl shows. A program that calls a Handler without a
// server is to find them with [http.Header.Get], and so there they are as that looks for them.
func spell(ctx context.Context, header http.Header) {
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
