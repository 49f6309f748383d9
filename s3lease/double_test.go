package s3lease

import (
	"bytes"
	"crypto/md5"
	"encoding/xml"
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

// A double is a bucket of S3 in memory, with the conditions of a read and a write, and pages of a list.
type double struct {
	addr     string                                   // of the server
	harm     atomic.Pointer[func(*http.Request) harm] // decides what happens to a request; nil: nothing
	ignores  string                                   // a header that the service ignores
	requests atomic.Int64
	puts     atomic.Int64
	ahead    time.Duration // of the clock of the service
	page     int           // keys in a page
	between  func()        // what happens before a repeated request arrives again; nil: nothing

	mu      sync.Mutex
	objects map[string]stored
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

func (h harm) String() string {
	return [...]string{"nothing", "lost answer", "slow request", "repeated request", "409", "503", "503 after a write"}[h]
}

func newDouble(t testing.TB) (d *double, url string) {
	d = &double{objects: map[string]stored{}, page: 1000}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	d.addr = s.Listener.Addr().String()
	return d, at(d.addr)
}

// harmed lets something happen to one of so many requests.
func (d *double) harmed(every int) {
	f := func(*http.Request) harm {
		if rand.IntN(every) > 0 {
			return nothing
		}
		return harm(1 + rand.IntN(int(failed)))
	}
	d.harm.Store(&f)
}

func etag(s stored) string { return fmt.Sprintf(`"%x"`, md5.Sum(s.data)) }

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.requests.Add(1); r.Method == http.MethodPut {
		d.puts.Add(1)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has given up before all of it was sent
	}
	what := nothing
	if f := d.harm.Load(); f != nil {
		what = (*f)(r)
	}
	switch what {
	case conflict:
		refuse(w, http.StatusConflict, "ConditionalRequestConflict")
		return
	case throttled:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return
	case slow:
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // a real network
	case repeated, lost, failed:
		d.serve(httptest.NewRecorder(), r, data)
		switch what {
		case lost:
			panic(http.ErrAbortHandler)
		case failed:
			refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable")
			return
		}
		if d.between != nil {
			d.between()
		}
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
	switch d.ignores {
	case "If-Match":
		is = ""
	case "If-None-Match":
		not = ""
	}
	switch {
	case bucket != "bucket":
		refuse(w, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet && key == "":
		d.list(w, r)
	case r.Method != http.MethodPut && !found, is != "" && !found:
		refuse(w, http.StatusNotFound, "NoSuchKey")
	case is != "" && is != etag(o), not == "*" && found:
		refuse(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag(o))
		w.Header().Set("Last-Modified", o.at.UTC().Format(http.TimeFormat))
		_, _ = w.Write(o.data)
	case r.Method == http.MethodPut:
		o = stored{bytes.Clone(data), time.Now().Add(d.ahead)}
		d.objects[key] = o
		w.Header().Set("ETag", etag(o))
	case r.Method == http.MethodDelete:
		delete(d.objects, key)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (d *double) list(w http.ResponseWriter, r *http.Request) {
	type content struct{ Key string }
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string
		Contents              []content
	}
	q := r.URL.Query()
	for _, key := range slices.Sorted(maps.Keys(d.objects)) {
		switch {
		case !strings.HasPrefix(key, q.Get("prefix")) || key <= q.Get("continuation-token"):
		case len(page.Contents) == d.page:
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[d.page-1].Key
		default:
			page.Contents = append(page.Contents, content{key})
		}
	}
	_ = xml.NewEncoder(w).Encode(page)
}
