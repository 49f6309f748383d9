package fencing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A holder that was paused for too long resumes and writes, although another holder has acquired the lease
// in the meantime, with a newer token.
func ExampleGuard() {
	var balance int
	var guard fencing.Guard
	write := func(tok lease.Token, value int) error {
		return guard.Do(tok, func() error { balance = value; return nil })
	}

	older, newer := lease.TokenOf(33), lease.TokenOf(34)
	fmt.Println("older advances:", guard.Advance(older))
	fmt.Println("older writes:", write(older, 10))
	fmt.Println("newer advances:", guard.Advance(newer))
	fmt.Println("newer writes:", write(newer, balance+1))

	err := write(older, 20) // a late write, which was decided before the newer holder wrote
	fmt.Println("stale:", errors.Is(err, fencing.ErrStale))
	fmt.Println(err)
	fmt.Println("balance:", balance)
	// Output:
	// older advances: <nil>
	// older writes: <nil>
	// newer advances: <nil>
	// newer writes: <nil>
	// stale: true
	// fencing: stale token 00000000000000000033: 00000000000000000034 has been seen
	// balance: 11
}

// A document keeps its mark in the file with its text, so that one rename replaces both.
type document struct {
	path string
	mu   sync.Mutex // for one process; several processes would also need a file lock
}

type contents struct {
	Mark lease.Token `json:"mark"`
	Text string      `json:"text"`
}

// Advance makes the contents of the file a [fencing.Mark].
func (c *contents) Advance(_ context.Context, tok lease.Token) (lease.Token, error) {
	if c.Mark.Compare(tok) < 0 {
		c.Mark = tok
	}
	return c.Mark, nil
}

// Write is one transaction: the rename of the file replaces both the mark and the text, or neither.
func (d *document) Write(ctx context.Context, tok lease.Token, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var c contents
	data, err := os.ReadFile(d.path)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := fencing.Advance(ctx, &c, tok); err != nil {
		return err
	}
	c.Text = text
	if data, err = json.Marshal(c); err != nil {
		return err
	}
	f, err := os.Create(d.path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(d.path+".new", d.path)
}

// The mark is kept with the data, so it is still there after a restart.
func ExampleAdvance() {
	dir, err := os.MkdirTemp("", "document")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "document.json")
	ctx := context.Background()

	d := &document{path: path}
	fmt.Println(d.Write(ctx, lease.TokenOf(34), "by the newer holder"))

	d = &document{path: path} // the process restarts
	fmt.Println(d.Write(ctx, lease.TokenOf(33), "by the older holder"))

	data, _ := os.ReadFile(path)
	fmt.Println(string(data))
	// Output:
	// <nil>
	// fencing: stale token 00000000000000000033: 00000000000000000034 has been seen
	// {"mark":"00000000000000000034","text":"by the newer holder"}
}

// The server has one guard for each thing, and refuses a late writer.
func ExampleHandler() {
	var guards fencing.Guards
	mux := http.NewServeMux()
	things, err := fencing.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s is now %s", r.PathValue("name"), body)
	}), &fencing.Options{Guard: guards.For(func(r *http.Request) string { return r.PathValue("name") })})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("PUT /things/{name}", things)

	put := func(name, tok, body string) {
		r := httptest.NewRequest("PUT", "/things/"+name, strings.NewReader(body))
		r.Header.Set("Fencing-Token", tok)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}
	put("door", "00000000000000000034", "open")
	put("door", "00000000000000000033", "shut")
	put("window", "00000000000000000001", "shut")
	put("window", "zzzz", "open")
	// Output:
	// 200 door is now open
	// 412 fencing: stale token 00000000000000000033: 00000000000000000034 has been seen
	// 200 window is now shut
	// 400 Token = "zzzz": must be 20 decimal digits from 1 to 1<<63-1
}

// The handler stores the token in one step with the data. After a restart, the server passes the stored
// token to NewGuard, so the new guard still refuses the older holder.
func ExampleTokenFromContext() {
	var stored struct { // stands for a file or a row that outlives the server
		mark lease.Token
		text string
	}
	start := func() http.Handler {
		guard, err := fencing.NewGuard(stored.mark)
		if err != nil {
			log.Fatal(err)
		}
		h, err := fencing.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tok, ok := fencing.TokenFromContext(r.Context())
			if !ok {
				http.Error(w, "no token", http.StatusInternalServerError)
				return
			}
			stored.mark = tok // also for a request that only reads
			if r.Method == "PUT" {
				stored.text = r.URL.Query().Get("text")
			}
			fmt.Fprint(w, stored.text)
		}), &fencing.Options{Guard: func(*http.Request) (*fencing.Guard, error) { return guard, nil }})
		if err != nil {
			log.Fatal(err)
		}
		return h
	}
	send := func(server http.Handler, method, tok, text string) {
		r := httptest.NewRequest(method, "/?text="+text, nil)
		r.Header.Set("Fencing-Token", tok)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	}

	send(start(), "PUT", "00000000000000000033", "first")
	send(start(), "GET", "00000000000000000034", "")      // a new holder reads
	send(start(), "PUT", "00000000000000000033", "stale") // the old holder writes late, after a restart of the server
	// Output:
	// 200 first
	// 200 first
	// 412 fencing: stale token 00000000000000000033: 00000000000000000034 has been seen
}

// A client sends the token of one term with all requests that it makes in that time.
func ExampleTransport() {
	h, err := fencing.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()

	for _, epoch := range []uint64{34, 33} {
		client := &http.Client{Transport: &fencing.Transport{Token: lease.TokenOf(epoch)}}
		resp, err := client.Post(server.URL, "text/plain", strings.NewReader("hello"))
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
		fmt.Println(fencing.DefaultHeader.Check(resp))
	}
	// Output:
	// 200 OK
	// <nil>
	// 412 Precondition Failed
	// fencing: stale token 00000000000000000033: 00000000000000000034 has been seen
}
