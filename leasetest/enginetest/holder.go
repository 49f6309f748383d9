package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
	"github.com/fencedlease/lease/session"
)

// asHolder is the environment variable that makes a process a holder. Its value contains orders in JSON.
const asHolder = "ENGINETEST_HOLDER"

type orders struct {
	Holder, Name, Endpoint, Resource string
	Duration                         time.Duration
	Seed                             uint64
	Bug                              bug
}

// The function hold returns false if this process was not started as a holder. Otherwise it passes the
// endpoint of the holder to the function open, which returns an authority. The holder then competes for a
// lease of this authority until the test ends, and the function hold returns true.
func hold(open func(endpoint string) (lease.Authority, error)) bool {
	text, ok := os.LookupEnv(asHolder)
	if !ok {
		return false
	}
	h := &holder{http: &http.Client{}}
	err := json.Unmarshal([]byte(text), &h.orders)
	if err == nil {
		err = h.work(open)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", h.Holder, err)
	}
	return true
}

type holder struct {
	orders
	rand *rand.Rand
	http *http.Client // requests to the resource have no timeout, because the resource always answers
	l    *session.Session
}

func (h *holder) work(open func(string) (lease.Authority, error)) error {
	a, err := open(h.Endpoint)
	if err != nil {
		return err
	}
	// The timeout is short compared with the duration, so that many requests have an unknown outcome.
	h.l, err = session.New(h.Bug.authority(a), h.Name, &session.Options{
		Owner: h.Holder, Duration: h.Duration, RenewInterval: h.Duration / 5, RequestTimeout: h.Duration / 8, RetryDelay: h.Duration / 20,
	})
	if err != nil {
		return err
	}
	h.rand = rand.New(rand.NewPCG(h.Seed, 0))
	ctx := Ready()
	for ctx.Err() == nil {
		tok, err := session.AcquireWait(ctx, h.l, &session.RunOptions{AcquireInterval: h.Duration / 10})
		if err != nil {
			if ctx.Err() == nil {
				h.bad("%v", err)
			}
			continue
		}
		if err := h.term(ctx, tok); err != nil {
			h.bad("%v", err)
		}
		h.release()
	}
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = h.l.Close(closing) // a lease that is not released expires by itself
	return nil
}

func (h *holder) release() {
	ctx, cancel := context.WithTimeout(context.Background(), h.Duration)
	defer cancel()
	_ = h.l.Release(ctx)
}

// After the holder has acquired the lease, it calls the method term to update the counter. The method reads
// the counter once, and then writes to the counter for a while. The method does not call CheckAlive before
// each write. Some writes are therefore late, as in a program that checks its lease, is suspended, and then
// writes. The method returns early if the guard refuses a request, or if ctx is done.
func (h *holder) term(ctx context.Context, tok lease.Token) error {
	var looking sync.WaitGroup
	defer looking.Wait()
	over := make(chan struct{})
	defer close(over)
	looking.Go(func() { h.look(over, tok) })

	n, err := h.count(tok)
	h.think(h.Duration / 3)
	for range 10 + h.rand.IntN(200) {
		if err != nil || ctx.Err() != nil {
			break
		}
		if err = h.write(tok, n, n+1); err == nil {
			n++
		}
		h.think(h.Duration / 50)
	}
	if errors.Is(err, fencing.ErrStale) {
		return nil
	}
	return err
}

func (h *holder) think(most time.Duration) { time.Sleep(time.Duration(h.rand.Int64N(int64(most)))) }

// The method look calls CheckAlive again and again until the given channel is closed. The method reports a
// failure if CheckAlive returns true although the guard has already admitted a newer token.
func (h *holder) look(over chan struct{}, tok lease.Token) {
	believed := false
	for {
		text, err := h.do("GET", fmt.Sprint("/newest?believed=", believed), "", "")
		if err != nil {
			h.bad("%v", err)
			return
		}
		believed = h.l.CheckAlive() || h.Bug == noDeadline
		if newest := lease.Token(text); believed && newest.Compare(tok) > 0 {
			h.bad("two believe: %s under %s, after %s was admitted", h.Holder, tok, newest)
		}
		select {
		case <-over:
			return
		case <-time.After(h.Duration / 200):
		}
	}
}

// count reads the counter under the token of the holder. This is the holder's first request to the guard.
func (h *holder) count(tok lease.Token) (n int, err error) {
	path := "/count"
	if h.Bug == noAdvance {
		path = "/peek"
	}
	text, err := h.do("GET", path, tok, "")
	if err == nil {
		_, err = fmt.Sscan(text, &n)
	}
	return n, err
}

func (h *holder) write(tok lease.Token, base, next int) error {
	_, err := h.do("PUT", "/count", tok, fmt.Sprint(base, " ", next))
	return err
}

func (h *holder) bad(format string, args ...any) {
	if _, err := h.do("POST", "/bad", "", fmt.Sprintf(format, args...)); err != nil {
		fmt.Fprintf(os.Stderr, "%s: "+format+"\n", append([]any{h.Holder}, args...)...)
	}
}

// do sends a request to the resource. The request contains tok unless tok is empty.
func (h *holder) do(method, path string, tok lease.Token, body string) (string, error) {
	q, err := http.NewRequest(method, h.Resource+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	q.Header.Set(holderHeader, h.Holder)
	if tok != "" {
		if err := fencing.DefaultHeader.Set(q.Header, tok); err != nil {
			return "", err
		}
	}
	res, err := h.http.Do(q)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if err := fencing.DefaultHeader.Check(res); err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return string(text), nil
}
