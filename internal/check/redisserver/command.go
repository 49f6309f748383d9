package redisserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencedlease/lease/internal/check/shorthand"
)

// Do sends one command with the program redis-cli. The answer is a string, an int64, a list of strings, or nil for a
// value that is not there. Do waits until ctx ends, and for at most 15 s.
func (s *Server) Do(ctx context.Context, args ...any) (answer any, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	words := []string{"-p", s.Port(), "-e", "-2", "--json"} // -e: an error of the server ends redis-cli with status 1
	for _, arg := range args {
		words = append(words, fmt.Sprint(arg))
	}
	out, err := exec.CommandContext(ctx, s.client, words...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", args, errors.Join(ctx.Err(), err), out)
	}
	if json.Unmarshal(out, &answer) != nil { // such as the answer to INFO
		return string(out), nil
	}
	if n, ok := answer.(float64); ok {
		return int64(n), nil
	}
	return answer, nil
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

// Await sends a command again and again, until its answer contains a text.
func (s *Server) Await(t testing.TB, text string, args ...any) {
	t.Helper()
	shorthand.Eventually(t, fmt.Sprintf("%v", args), func(ctx context.Context) error {
		answer, err := s.Do(ctx, args...)
		if err == nil && !strings.Contains(fmt.Sprint(answer), text) {
			err = fmt.Errorf("the answer is %v, without %q", answer, text)
		}
		return err
	})
}
