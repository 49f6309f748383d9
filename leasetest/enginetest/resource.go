package enginetest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/fencedlease/lease"
	"github.com/fencedlease/lease/fencing"
)

// A resource is a counter behind a guard:
//
//	GET /count   reads it, under a token
//	PUT /count   writes "base next", under a token: next, computed from base
//	GET /peek    reads it past the guard, as no holder should
//	GET /newest  the newest token that was admitted
//	POST /bad    a violation that a holder has found
type resource struct {
	url  string
	http *http.Server
	done sync.WaitGroup

	mu     sync.Mutex
	count  int
	newest lease.Token            // the newest token that was admitted for a read or a write
	shown  map[lease.Token]string // the holder that showed each token
	report report
}

// A report contains the counts and the violations of a group of holders.
type report struct {
	grants   int // the number of tokens that were admitted
	admitted int // the number of writes that were admitted
	refused  int // the number of requests that the guard refused, because their token was too old
	checks   int // the number of checks, in which a holder asks for the newest token
	believed int // the number of checks before which CheckAlive returned true
	bad      []string
}

func newResource(b bug) (*resource, error) {
	r := &resource{shown: map[lease.Token]string{}}
	count := http.NewServeMux()
	count.HandleFunc("GET /count", r.read)
	count.HandleFunc("PUT /count", r.write)
	guarded, err := fencing.Handler(count, nil)
	if err != nil {
		return nil, err
	}
	if b == noGuard {
		guarded = count
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/count", func(w http.ResponseWriter, q *http.Request) { guarded.ServeHTTP(&watched{w, r}, q) })
	mux.HandleFunc("GET /peek", func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		fmt.Fprint(w, r.count)
	})
	mux.HandleFunc("GET /newest", r.look)
	mux.HandleFunc("POST /bad", func(_ http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		r.bad("%s", text)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.url, r.http = "http://"+l.Addr().String(), &http.Server{Handler: mux}
	r.done.Go(func() { _ = r.http.Serve(l) }) // ends when close is called
	return r, nil
}

func (r *resource) close() {
	_ = r.http.Close()
	r.done.Wait()
}

// watched counts the requests that the guard refused.
type watched struct {
	http.ResponseWriter
	r *resource
}

func (w *watched) WriteHeader(status int) {
	if status == http.StatusPreconditionFailed {
		w.r.mu.Lock()
		w.r.report.refused++
		w.r.mu.Unlock()
	}
	w.ResponseWriter.WriteHeader(status)
}

const holderHeader = "Holder"

func (r *resource) admitted(what string, q *http.Request) {
	tok, holder := lease.Token(q.Header.Get(string(fencing.DefaultHeader))), q.Header.Get(holderHeader)
	if tok.Compare(r.newest) < 0 {
		r.badLocked("a stale %s passed: token %s of %s after %s of %s", what, tok, holder, r.newest, r.shown[r.newest])
	}
	if other, ok := r.shown[tok]; !ok {
		r.shown[tok] = holder
		r.report.grants++
	} else if other != holder {
		r.badLocked("token %s was shown by %s and by %s", tok, other, holder)
	}
	if tok.Compare(r.newest) > 0 {
		r.newest = tok
	}
}

func (r *resource) read(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admitted("read", q)
	fmt.Fprint(w, r.count)
}

func (r *resource) write(w http.ResponseWriter, q *http.Request) {
	var base, next int
	if _, err := fmt.Fscan(q.Body, &base, &next); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admitted("write", q)
	r.report.admitted++
	if base != r.count {
		r.badLocked("an update was lost: %s wrote %d, computed from %d, over %d", q.Header.Get(holderHeader), next, base, r.count)
	}
	r.count = next
}

// In a check, a holder asks for the newest token, and compares this token with its own. The method look
// answers with the newest token, and counts the checks.
func (r *resource) look(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.checks++
	if believed, _ := strconv.ParseBool(q.FormValue("believed")); believed {
		r.report.believed++
	}
	fmt.Fprint(w, r.newest)
}

func (r *resource) bad(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.badLocked(format, args...)
}

func (r *resource) badLocked(format string, args ...any) {
	r.report.bad = append(r.report.bad, fmt.Sprintf(format, args...))
}

// holder returns the name of the process that sent the newest token.
func (r *resource) holder() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown[r.newest]
}

func (r *resource) seen() report {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.report
	seen.bad = append([]string(nil), r.report.bad...)
	return seen
}
