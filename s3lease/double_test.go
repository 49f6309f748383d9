package s3lease

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A double is a bucket of S3 in memory, with the conditions of a read and a write, and short pages of a list.
type double struct {
	addr     string                   // of the server
	harm     func(*http.Request) harm // decides what happens to a request
	ignores  string                   // a header that the service ignores
	requests atomic.Int64
	writes   atomic.Int64 // that were granted
	between  func()       // what happens before a repeated request arrives again

	mu      sync.Mutex
	objects map[string]stored
	ahead   time.Duration // of the clock of the service
}

type stored struct {
	data []byte
	at   time.Time
}

// A harm is what happens to a request.
type harm int

const (
	nothing   harm = iota
	lost           // the answer is lost
	slow           // the request arrives late
	repeated       // a proxy sends it twice, because it lost the first answer
	conflict       // 409: another write is under way
	throttled      // 503, and nothing is written
	failed         // 503, though the object is written
)

func newDouble(t testing.TB) (d *double, url string) {
	d = &double{objects: map[string]stored{}, harm: func(*http.Request) harm { return nothing }, between: func() {}}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	d.addr = s.Listener.Addr().String()
	return d, at(d.addr)
}

// harmed lets something happen to one of so many requests.
func (d *double) harmed(every int) {
	d.harm = func(*http.Request) harm {
		if rand.IntN(every) > 0 {
			return nothing
		}
		return harm(1 + rand.IntN(int(failed)))
	}
}

// harmWrites lets something happen to the next writes.
func (d *double) harmWrites(what harm, writes int64) {
	var n atomic.Int64
	d.harm = func(r *http.Request) harm {
		if r.Method == http.MethodPut && n.Add(1) <= writes {
			return what
		}
		return nothing
	}
}

// remove deletes the object of the lease "job", as a person could. Two seconds pass.
func (d *double) remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.objects, DefaultPrefix+"job")
	d.ahead += 2 * time.Second
	return nil
}

func etag(s stored) string { return fmt.Sprintf(`"%x"`, md5.Sum(s.data)) }

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.requests.Add(1)
	r.Header.Del(d.ignores)
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has given up before all of it was sent
	}
	what := d.harm(r)
	switch what {
	case slow:
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // a real network
	case repeated, lost, failed:
		d.serve(httptest.NewRecorder(), r, data)
	}
	switch what {
	case lost:
		panic(http.ErrAbortHandler)
	case conflict:
		refuse(w, http.StatusConflict, "ConditionalRequestConflict")
		return
	case throttled, failed:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return
	case repeated:
		d.between()
	}
	d.serve(w, r, data)
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
}

func (d *double) serve(w http.ResponseWriter, r *http.Request, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	o, found := d.objects[key]
	is, not := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch {
	case bucket != "bucket":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case key == "":
		d.list(w, r)
	case !found && (r.Method == http.MethodGet || is != ""):
		refuse(w, http.StatusNotFound, "NoSuchKey")
	case is != "" && is != etag(o), not == "*" && found:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag(o))
		w.Header().Set("Last-Modified", o.at.UTC().Format(http.TimeFormat))
		_, _ = w.Write(o.data)
	default:
		o = stored{bytes.Clone(data), time.Now().Add(d.ahead)}
		d.objects[key] = o
		d.writes.Add(1)
		w.Header().Set("ETag", etag(o))
	}
}

const keysOfPage = 10

func (d *double) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	fmt.Fprint(w, "<ListBucketResult>")
	last, n := "", 0
	for _, key := range slices.Sorted(maps.Keys(d.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= q.Get("continuation-token") {
			continue
		}
		if n == keysOfPage {
			fmt.Fprintf(w, "<IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", last)
			break
		}
		fmt.Fprintf(w, "<Contents><Key>%s</Key></Contents>", key) // a key needs no escapes
		last, n = key, n+1
	}
	fmt.Fprint(w, "</ListBucketResult>")
}
