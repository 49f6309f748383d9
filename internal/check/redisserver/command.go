package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Do sends one command over a connection of its own. The answer is a string, an int64, a list of answers, or
// nil for a value that is not there. Do waits until ctx ends, and for at most 15 s.
func (s *Server) Do(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	command := fmt.Sprintf("*%d\r\n", len(args))
	for _, arg := range args {
		text := fmt.Sprint(arg)
		command += fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	}
	if _, err := io.WriteString(conn, command); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	answer, err := read(bufio.NewReader(conn))
	if err != nil {
		err = fmt.Errorf("%v: %w", args, errors.Join(ctx.Err(), err))
	}
	return answer, err
}

// read reads an answer in version 2 of the protocol RESP.
func read(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the server answers %q", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2) // and the end of the line
		_, err := io.ReadFull(in, text)
		return string(text[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = read(in); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Must sends a command that must succeed.
func (s *Server) Must(t testing.TB, args ...any) any {
	t.Helper()
	answer, err := s.Do(context.Background(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
